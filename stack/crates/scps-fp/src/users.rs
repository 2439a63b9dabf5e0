//! Who may log in: a JSON file with salted, slow password hashes (scps-fp §1.3).
//!
//! An unknown name and a wrong password take the same time and get the same answer.

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// What a user may do.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Argon2id in PHC form; without one, any password is right (anonymous).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The folder that is this user's root.
    pub root: PathBuf,
    /// May change nothing.
    #[serde(default)]
    pub read_only: bool,
    /// Octets that may be stored below the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<u64>,
    /// May end the server.
    #[serde(default)]
    pub admin: bool,
}

/// The users of a server.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    /// By name.
    #[serde(deserialize_with = "each_once")]
    pub users: BTreeMap<String, User>,
    #[serde(skip)]
    decoy: Option<String>,
}

/// Reads a table in which no key is there twice: of two entries the last would count, and nobody would know.
pub fn each_once<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord + fmt::Display,
    V: Deserialize<'de>,
{
    struct Table<K, V>(PhantomData<(K, V)>);

    impl<'de, K: Deserialize<'de> + Ord + fmt::Display, V: Deserialize<'de>> Visitor<'de> for Table<K, V> {
        type Value = BTreeMap<K, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut table = BTreeMap::new();
            while let Some(key) = entries.next_key::<K>()? {
                if table.contains_key(&key) {
                    return Err(A::Error::custom(format!("found {key} twice; expected it once. Leave one out")));
                }
                table.insert(key, entries.next_value()?);
            }
            Ok(table)
        }
    }

    deserializer.deserialize_map(Table(PhantomData))
}

/// 19 MiB, two passes, one lane: the least OWASP recommends for Argon2id.
fn hasher() -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(19 * 1024, 2, 1, None).unwrap_or_default())
}

/// Hashes a password with 16 octets of salt.
pub fn hash_password(password: &str, salt: [u8; 16]) -> Result<String, String> {
    let salt = SaltString::encode_b64(&salt).map_err(|e| e.to_string())?;
    hasher().hash_password(password.as_bytes(), &salt).map(|h| h.to_string()).map_err(|e| e.to_string())
}

impl Users {
    /// Reads the users file. Relative roots are relative to `base`.
    pub fn parse(text: &str, base: &Path) -> Result<Users, String> {
        let mut users: Users = serde_json::from_str(text).map_err(|e| e.to_string())?;
        for (name, user) in &mut users.users {
            user.root = base.join(&user.root);
            if let Some(hash) = &user.password {
                PasswordHash::new(hash).map_err(|e| format!("user {name}: password: {e}; expected an Argon2 hash"))?;
            } else if !user.read_only {
                return Err(format!("user {name}: found no password; expected one, or \"read_only\": true"));
            } else if user.admin {
                return Err(format!(
                    "user {name}: found no password; expected one, for an administrator may end the server"
                ));
            }
        }
        Ok(users)
    }

    /// One user without a password, who may change things: for tests and closed networks.
    pub fn open(name: &str, root: &Path, read_only: bool) -> Users {
        let user = User { password: None, root: root.to_owned(), read_only, quota: None, admin: false };
        Users { users: BTreeMap::from([(name.to_owned(), user)]), decoy: None }
    }

    /// The user, if name and password are right.
    pub fn check(&mut self, name: &str, password: &str) -> Option<User> {
        let user = self.users.get(name);
        if let Some(User { password: None, .. }) = user {
            return user.cloned();
        }
        let decoy = self.decoy.get_or_insert_with(|| hash_password("", [0; 16]).unwrap_or_default());
        let hash = user.and_then(|u| u.password.as_deref()).unwrap_or(decoy);
        let parsed = PasswordHash::new(hash).ok()?;
        let is_right = hasher().verify_password(password.as_bytes(), &parsed).is_ok();
        user.filter(|_| is_right).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hashed_salted_and_checked() {
        let hash = hash_password("secret", [7; 16]).unwrap();
        assert!(hash.starts_with("$argon2id$") && !hash.contains("secret"));
        assert_ne!(hash, hash_password("secret", [8; 16]).unwrap());
        let text = format!(
            r#"{{"users": {{"a": {{"password": "{hash}", "root": "r"}}, "anonymous": {{"root": "p", "read_only": true}}}}}}"#
        );
        let mut users = Users::parse(&text, Path::new("/base")).unwrap();
        assert_eq!(users.check("a", "secret").unwrap().root, Path::new("/base/r"));
        assert_eq!(users.check("a", "Secret"), None);
        assert_eq!(users.check("nobody", ""), None);
        assert!(users.check("anonymous", "me@example.org").unwrap().read_only);
    }

    #[test]
    fn a_users_file_that_lets_anybody_write_is_refused() {
        let error = Users::parse(r#"{"users": {"a": {"root": "r"}}}"#, Path::new("/")).unwrap_err();
        assert!(error.contains("expected one"), "{error}");
        assert!(Users::parse(r#"{"users": {"a": {"password": "plain", "root": "r"}}}"#, Path::new("/")).is_err());
    }

    #[test]
    fn an_administrator_without_a_password_is_refused() {
        let text = r#"{"users": {"a": {"root": "r", "read_only": true, "admin": true}}}"#;
        let error = Users::parse(text, Path::new("/")).unwrap_err();
        assert!(error.starts_with("user a: found no password; expected one, for an administrator"), "{error}");
    }

    #[test]
    fn a_name_that_is_there_twice_is_refused() {
        let text = r#"{"users": {"a": {"root": "r", "read_only": true}, "a": {"root": "s", "read_only": true}}}"#;
        let error = Users::parse(text, Path::new("/")).unwrap_err();
        assert!(error.starts_with("found a twice; expected it once. Leave one out at line 1"), "{error}");
    }
}
