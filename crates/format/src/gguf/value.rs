//! Metadata values: the thirteen types of GGUF, and an ordered map of them with checked conversions.
//!
//! Invariant: a getter never guesses. An absent key is `None`; a value of another type, or an integer that does not
//! fit, is an error that names the key.

use crate::FormatError;
use std::collections::HashMap;

macro_rules! values {
    ($($variant:ident($scalar:ty) = $number:literal, $name:literal;)*) => {
        /// One metadata value.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Value {
            $($variant($scalar),)*
            Array(Array),
        }

        /// Elements of one type; arrays may nest.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Array {
            $($variant(Vec<$scalar>),)*
            Array(Vec<Array>),
        }

        impl Value {
            /// The type's number in the file.
            pub(crate) fn number(&self) -> u32 {
                match self {
                    $(Self::$variant(_) => $number,)*
                    Self::Array(_) => ARRAY,
                }
            }

            /// The type's name, as in `u32` or `array of string`.
            pub fn type_name(&self) -> String {
                match self {
                    $(Self::$variant(_) => $name.to_owned(),)*
                    Self::Array(array) => format!("array of {}", array.element_name()),
                }
            }
        }

        impl Array {
            /// The element type's number in the file.
            pub(crate) fn element_number(&self) -> u32 {
                match self {
                    $(Self::$variant(_) => $number,)*
                    Self::Array(_) => ARRAY,
                }
            }

            /// The element type's name.
            pub fn element_name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Array(_) => "array",
                }
            }

            /// Number of elements.
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$variant(v) => v.len(),)*
                    Self::Array(v) => v.len(),
                }
            }
        }

        $(
            impl From<$scalar> for Value {
                fn from(value: $scalar) -> Self {
                    Self::$variant(value)
                }
            }

            impl From<Vec<$scalar>> for Value {
                fn from(values: Vec<$scalar>) -> Self {
                    Self::Array(Array::$variant(values))
                }
            }
        )*
    };
}

values! {
    U8(u8) = 0, "u8";
    I8(i8) = 1, "i8";
    U16(u16) = 2, "u16";
    I16(i16) = 3, "i16";
    U32(u32) = 4, "u32";
    I32(i32) = 5, "i32";
    F32(f32) = 6, "f32";
    Bool(bool) = 7, "bool";
    String(String) = 8, "string";
    U64(u64) = 10, "u64";
    I64(i64) = 11, "i64";
    F64(f64) = 12, "f64";
}

/// Number of the array type in the file.
pub(crate) const ARRAY: u32 = 9;

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl Array {
    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Value {
    /// An integer of any width, widened.
    fn integer(&self) -> Option<i128> {
        Some(match *self {
            Self::U8(v) => v.into(),
            Self::I8(v) => v.into(),
            Self::U16(v) => v.into(),
            Self::I16(v) => v.into(),
            Self::U32(v) => v.into(),
            Self::I32(v) => v.into(),
            Self::U64(v) => v.into(),
            Self::I64(v) => v.into(),
            _ => return None,
        })
    }
}

/// Metadata in file order.
#[derive(Clone, Default)]
pub struct Metadata {
    entries: Vec<(String, Value)>,
    index: HashMap<String, usize>,
}

impl std::fmt::Debug for Metadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl PartialEq for Metadata {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl FromIterator<(String, Value)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(entries: I) -> Self {
        let mut metadata = Self::default();
        for (key, value) in entries {
            metadata.insert(key, value);
        }
        metadata
    }
}

impl Metadata {
    /// Sets `key`, in its old place if it was there, else at the end; returns the value replaced.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let key = key.into();
        if let Some(at) = self.index.get(&key) {
            return Some(std::mem::replace(&mut self.entries[*at].1, value.into()));
        }
        self.index.insert(key.clone(), self.entries.len());
        self.entries.push((key, value.into()));
        None
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.index.get(key).map(|at| &self.entries[*at].1)
    }

    /// Keys and values in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// An integer of any type that fits a u64.
    pub fn u64(&self, key: &str) -> Result<Option<u64>, FormatError> {
        self.integer(key, "an integer that fits u64")
    }

    /// An integer of any type that fits a usize.
    pub fn usize(&self, key: &str) -> Result<Option<usize>, FormatError> {
        self.integer(key, "an integer that fits usize")
    }

    /// An integer of any type that fits a u32.
    pub fn u32(&self, key: &str) -> Result<Option<u32>, FormatError> {
        self.integer(key, "an integer that fits u32")
    }

    /// An f32, or an f64 rounded to it.
    pub fn f32(&self, key: &str) -> Result<Option<f32>, FormatError> {
        self.convert(key, "a float", |value| match *value {
            Value::F32(v) => Some(v),
            Value::F64(v) => Some(v as f32),
            _ => None,
        })
    }

    /// A boolean.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, FormatError> {
        self.convert(key, "a boolean", |value| match *value {
            Value::Bool(v) => Some(v),
            _ => None,
        })
    }

    /// A string.
    pub fn str(&self, key: &str) -> Result<Option<&str>, FormatError> {
        self.convert(key, "a string", |value| match value {
            Value::String(v) => Some(v.as_str()),
            _ => None,
        })
    }

    /// An array of strings.
    pub fn strings(&self, key: &str) -> Result<Option<&[String]>, FormatError> {
        self.convert(key, "an array of strings", |value| match value {
            Value::Array(Array::String(v)) => Some(v.as_slice()),
            _ => None,
        })
    }

    /// An array of f32, or of f64 rounded to it.
    pub fn f32s(&self, key: &str) -> Result<Option<Vec<f32>>, FormatError> {
        self.convert(key, "an array of floats", |value| match value {
            Value::Array(Array::F32(v)) => Some(v.clone()),
            Value::Array(Array::F64(v)) => Some(v.iter().map(|v| *v as f32).collect()),
            _ => None,
        })
    }

    /// An array of integers of any type, or of booleans as 0 and 1.
    pub fn i64s(&self, key: &str) -> Result<Option<Vec<i64>>, FormatError> {
        self.convert(key, "an array of integers that fit i64", |value| {
            let Value::Array(array) = value else { return None };
            match array {
                Array::U8(v) => Some(v.iter().map(|v| i64::from(*v)).collect()),
                Array::I8(v) => Some(v.iter().map(|v| i64::from(*v)).collect()),
                Array::U16(v) => Some(v.iter().map(|v| i64::from(*v)).collect()),
                Array::I16(v) => Some(v.iter().map(|v| i64::from(*v)).collect()),
                Array::U32(v) => Some(v.iter().map(|v| i64::from(*v)).collect()),
                Array::I32(v) => Some(v.iter().map(|v| i64::from(*v)).collect()),
                Array::U64(v) => v.iter().map(|v| i64::try_from(*v).ok()).collect(),
                Array::I64(v) => Some(v.clone()),
                Array::Bool(v) => Some(v.iter().map(|v| i64::from(*v)).collect()),
                Array::F32(_) | Array::F64(_) | Array::String(_) | Array::Array(_) => None,
            }
        })
    }

    fn integer<T: TryFrom<i128>>(&self, key: &str, expected: &'static str) -> Result<Option<T>, FormatError> {
        self.convert(key, expected, |value| value.integer().and_then(|v| T::try_from(v).ok()))
    }

    fn convert<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, FormatError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match convert(value) {
            Some(converted) => Ok(Some(converted)),
            None => Err(FormatError::WrongType {
                key: key.to_owned(),
                expected,
                found: match value.integer() {
                    Some(v) => format!("{v} ({})", value.type_name()),
                    None => value.type_name(),
                },
            }),
        }
    }
}
