//! How a struct of settings is declared, and an enum of which each kind has a name.

/// Declares a struct of settings that may grow: everybody reads and sets its fields, nobody writes it out whole, and
/// each field has a setter of its name that takes the settings and gives them back.
///
/// ```
/// scps_wire::settings! {
///     /// Settings of a pump.
///     #[derive(Clone, Debug, Default)]
///     pub struct PumpConfig {
///         /// Strokes a minute.
///         pub strokes: u32,
///         /// Where it pumps to.
///         pub to: String,
///     }
/// }
/// let config = PumpConfig::default().strokes(40).to("the tank".into());
/// assert_eq!((config.strokes, &config.to[..]), (40, "the tank"));
/// ```
#[macro_export]
macro_rules! settings {
    ($($(#[$of:meta])* pub struct $name:ident {
        $($(#[$about:meta])* pub $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$of])*
        #[non_exhaustive]
        pub struct $name {
            $($(#[$about])* pub $field: $type,)*
        }

        impl $name {
            $(
                $(#[$about])*
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )*
        }
    )*};
}

/// Declares an enum of which each kind has a name in records, and a list of all of them, in order.
///
/// ```
/// scps_wire::named! {
///     /// What a pump does.
///     #[derive(Clone, Copy, PartialEq, Eq, Debug)]
///     pub enum Stroke {
///         /// Water comes in.
///         Suction = "suction",
///         /// Water goes out.
///         Pressure = "pressure",
///     }
/// }
/// assert_eq!(Stroke::ALL.map(Stroke::name), ["suction", "pressure"]);
/// ```
#[macro_export]
macro_rules! named {
    ($(#[$of:meta])* pub enum $name:ident { $($(#[$about:meta])* $kind:ident = $text:literal,)* }) => {
        $(#[$of])*
        pub enum $name {
            $($(#[$about])* $kind,)*
        }

        impl $name {
            /// Every one, in order.
            pub const ALL: [$name; [$($text),*].len()] = [$($name::$kind),*];

            /// Its stable name in records.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$kind => $text,)*
                }
            }
        }
    };
}
