//! How a struct of settings is declared.

/// Declares a struct of settings that may grow: everybody reads and sets its fields, nobody writes it out whole, and
/// each field has a setter of its name that takes the settings and gives them back.
///
/// ```
/// scps_types::settings! {
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
