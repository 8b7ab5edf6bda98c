//! Parameters of statements.

use std::borrow::Cow;

use ::postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use bytes::{BufMut as _, BytesMut};

use super::{Error, Result};

/// A parameter, as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::postgres) enum Value<'a> {
    Null,
    Integer(i64),
    Boolean(bool),
    Text(&'a str),
    Blob(&'a [u8]),
}

type Source = Box<dyn std::error::Error + Send + Sync>;

impl ToSql for Value<'_> {
    fn to_sql(&self, column: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, Source> {
        match (*self, column) {
            (Self::Null, _) => return Ok(IsNull::Yes),
            (Self::Integer(number), &Type::INT8) => out.put_i64(number),
            (Self::Integer(number), &Type::INT4) => out.put_i32(number.try_into()?),
            (Self::Boolean(truth), &Type::BOOL) => out.put_u8(truth.into()),
            (Self::Boolean(truth), &Type::INT8) => out.put_i64(truth.into()),
            (Self::Text(text), &Type::TEXT | &Type::VARCHAR) => out.put_slice(storable(text).as_bytes()),
            (Self::Blob(bytes), &Type::BYTEA) => out.put_slice(bytes),
            (_, _) => return Err(format!("{self:?} is no value of type {column}").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// PostgreSQL's text holds every character but one, which a hostile host may send.
fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// A type that is written into a column.
pub(in crate::postgres) trait ToColumn {
    fn to_column(&self) -> Result<Value<'_>>;
}

impl<T: ToColumn + ?Sized> ToColumn for &T {
    fn to_column(&self) -> Result<Value<'_>> {
        (**self).to_column()
    }
}

impl<T: ToColumn> ToColumn for Option<T> {
    fn to_column(&self) -> Result<Value<'_>> {
        self.as_ref().map_or(Ok(Value::Null), ToColumn::to_column)
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl ToColumn for $integer {
            fn to_column(&self) -> Result<Value<'_>> {
                i64::try_from(*self).map(Value::Integer).map_err(Error::unwritable)
            }
        }
    )*};
}

integers!(i32 i64 u8 u32 u64 usize);

impl ToColumn for bool {
    fn to_column(&self) -> Result<Value<'_>> {
        Ok(Value::Boolean(*self))
    }
}

impl ToColumn for str {
    fn to_column(&self) -> Result<Value<'_>> {
        Ok(Value::Text(self))
    }
}

impl ToColumn for String {
    fn to_column(&self) -> Result<Value<'_>> {
        Ok(Value::Text(self))
    }
}

impl ToColumn for [u8] {
    fn to_column(&self) -> Result<Value<'_>> {
        Ok(Value::Blob(self))
    }
}

impl ToColumn for Vec<u8> {
    fn to_column(&self) -> Result<Value<'_>> {
        Ok(Value::Blob(self))
    }
}

impl<const N: usize> ToColumn for [u8; N] {
    fn to_column(&self) -> Result<Value<'_>> {
        Ok(Value::Blob(self))
    }
}

/// The parameters of a statement, in the order of their numbers.
pub(in crate::postgres) trait Params {
    fn values(&self) -> Result<Vec<Value<'_>>>;
}

impl Params for &[&dyn ToColumn] {
    fn values(&self) -> Result<Vec<Value<'_>>> {
        self.iter().map(|value| value.to_column()).collect()
    }
}

impl Params for [&dyn ToColumn; 0] {
    fn values(&self) -> Result<Vec<Value<'_>>> {
        Ok(Vec::new())
    }
}

impl<T: ToColumn> Params for [T; 1] {
    fn values(&self) -> Result<Vec<Value<'_>>> {
        self.iter().map(ToColumn::to_column).collect()
    }
}

impl<T: ToColumn> Params for [T; 2] {
    fn values(&self) -> Result<Vec<Value<'_>>> {
        self.iter().map(ToColumn::to_column).collect()
    }
}

pub(super) fn references<'a>(values: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// Parameters of different types.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$(&$value as &dyn $crate::postgres::sql::ToColumn),*] as &[&dyn $crate::postgres::sql::ToColumn]
    };
}
pub(in crate::postgres) use params;
