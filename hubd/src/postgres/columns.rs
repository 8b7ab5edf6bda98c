//! Column types: times in milliseconds, ids as bytes, names as text.

use std::str::FromStr;

use holdfast_protocol::generation::Generation;
use holdfast_protocol::job::act::Sha256Text;
use jiff::Timestamp;
use uuid::Uuid;

use super::sql::{self, Error, FromColumn, Row, ToColumn, Value, ValueRef};

#[derive(Clone, Copy)]
pub(super) struct Time(pub Timestamp);

impl ToColumn for Time {
    fn to_column(&self) -> sql::Result<Value<'_>> {
        Ok(Value::Integer(self.0.as_millisecond()))
    }
}

impl FromColumn for Time {
    fn column(value: ValueRef<'_>) -> sql::Result<Self> {
        Timestamp::from_millisecond(value.as_i64()?).map(Self).map_err(Error::unreadable)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Id(pub Uuid);

impl ToColumn for Id {
    fn to_column(&self) -> sql::Result<Value<'_>> {
        Ok(Value::Blob(self.0.as_bytes()))
    }
}

impl FromColumn for Id {
    fn column(value: ValueRef<'_>) -> sql::Result<Self> {
        Uuid::from_slice(value.as_blob()?).map(Self).map_err(Error::unreadable)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Number(pub Generation);

impl ToColumn for Number {
    fn to_column(&self) -> sql::Result<Value<'_>> {
        i64::try_from(self.0.number()).map(Value::Integer).map_err(Error::unwritable)
    }
}

impl FromColumn for Number {
    fn column(value: ValueRef<'_>) -> sql::Result<Self> {
        let number = u64::try_from(value.as_i64()?).map_err(Error::unreadable)?;
        Ok(Self(Generation::new(number)))
    }
}

/// A name, or another type that reads itself from text.
pub(super) struct Text<T>(pub T);

impl<T> FromColumn for Text<T>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    fn column(value: ValueRef<'_>) -> sql::Result<Self> {
        value.as_str()?.parse().map(Self).map_err(Error::unreadable)
    }
}

/// A column whose text its type reads, with the type's own sentence where it does not.
pub(super) fn text<T>(
    row: &Row<'_>,
    name: &str,
    read: impl Fn(String) -> Result<T, &'static str>,
) -> sql::Result<T> {
    read(row.get::<_, String>(name)?).map_err(Error::unreadable)
}

pub(super) fn digest(row: &Row<'_>, name: &str) -> sql::Result<Sha256Text> {
    text(row, name, Sha256Text::try_from)
}
