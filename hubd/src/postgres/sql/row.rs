//! Rows, and columns read into the hub's types.

use std::fmt::Display;

use ::postgres::row::RowIndex;
use ::postgres::types::{FromSql, Type};

use super::{Error, Result};

/// A row of an answer.
pub(in crate::postgres) struct Row<'a>(pub(in crate::postgres) &'a ::postgres::Row);

impl Row<'_> {
    pub(in crate::postgres) fn get<I: RowIndex + Display, T: FromColumn>(&self, place: I) -> Result<T> {
        T::column(self.get_ref(place)?)
    }

    pub(in crate::postgres) fn get_ref<I: RowIndex + Display>(&self, place: I) -> Result<ValueRef<'_>> {
        Ok(self.0.try_get::<_, ValueRef<'_>>(place)?)
    }
}

/// A column's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::postgres) enum ValueRef<'a> {
    Null,
    Integer(i64),
    Boolean(bool),
    Text(&'a str),
    Blob(&'a [u8]),
}

type Source = Box<dyn std::error::Error + Send + Sync>;

impl<'a> FromSql<'a> for ValueRef<'a> {
    fn from_sql(column: &Type, raw: &'a [u8]) -> std::result::Result<Self, Source> {
        Ok(match *column {
            Type::INT8 => Self::Integer(i64::from_sql(column, raw)?),
            Type::INT4 => Self::Integer(i32::from_sql(column, raw)?.into()),
            Type::INT2 => Self::Integer(i16::from_sql(column, raw)?.into()),
            Type::BOOL => Self::Boolean(bool::from_sql(column, raw)?),
            Type::BYTEA => Self::Blob(raw),
            Type::TEXT | Type::VARCHAR | Type::NAME | Type::UNKNOWN => Self::Text(std::str::from_utf8(raw)?),
            _ => return Err(format!("type {column} is not one of the hub's").into()),
        })
    }

    fn from_sql_null(_: &Type) -> std::result::Result<Self, Source> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl<'a> ValueRef<'a> {
    fn is_no(self, wanted: &str) -> Error {
        let held = match self {
            Self::Null => "nothing",
            Self::Integer(_) => "an integer",
            Self::Boolean(_) => "a truth value",
            Self::Text(_) => "text",
            Self::Blob(_) => "bytes",
        };
        Error::unreadable(format!("the column has {held} and not {wanted}"))
    }

    pub(in crate::postgres) fn as_i64(self) -> Result<i64> {
        match self {
            Self::Integer(number) => Ok(number),
            Self::Boolean(truth) => Ok(truth.into()),
            Self::Null | Self::Text(_) | Self::Blob(_) => Err(self.is_no("an integer")),
        }
    }

    pub(in crate::postgres) fn as_str(self) -> Result<&'a str> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Null | Self::Integer(_) | Self::Boolean(_) | Self::Blob(_) => Err(self.is_no("text")),
        }
    }

    pub(in crate::postgres) fn as_blob(self) -> Result<&'a [u8]> {
        match self {
            Self::Blob(bytes) => Ok(bytes),
            Self::Null | Self::Integer(_) | Self::Boolean(_) | Self::Text(_) => Err(self.is_no("bytes")),
        }
    }
}

/// A type that reads itself from a column.
pub(in crate::postgres) trait FromColumn: Sized {
    fn column(value: ValueRef<'_>) -> Result<Self>;
}

impl<T: FromColumn> FromColumn for Option<T> {
    fn column(value: ValueRef<'_>) -> Result<Self> {
        match value {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(_) | ValueRef::Boolean(_) | ValueRef::Text(_) | ValueRef::Blob(_) => {
                T::column(value).map(Some)
            }
        }
    }
}

impl FromColumn for i64 {
    fn column(value: ValueRef<'_>) -> Result<Self> {
        value.as_i64()
    }
}

impl FromColumn for u32 {
    fn column(value: ValueRef<'_>) -> Result<Self> {
        Self::try_from(value.as_i64()?).map_err(Error::unreadable)
    }
}

impl FromColumn for u64 {
    fn column(value: ValueRef<'_>) -> Result<Self> {
        Self::try_from(value.as_i64()?).map_err(Error::unreadable)
    }
}

impl FromColumn for bool {
    fn column(value: ValueRef<'_>) -> Result<Self> {
        Ok(value.as_i64()? != 0)
    }
}

impl FromColumn for String {
    fn column(value: ValueRef<'_>) -> Result<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl FromColumn for Vec<u8> {
    fn column(value: ValueRef<'_>) -> Result<Self> {
        value.as_blob().map(<[u8]>::to_vec)
    }
}

impl<const N: usize> FromColumn for [u8; N] {
    fn column(value: ValueRef<'_>) -> Result<Self> {
        Self::try_from(value.as_blob()?).map_err(Error::unreadable)
    }
}
