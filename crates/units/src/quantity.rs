//! The common part of every quantity.

/// Declares a quantity: a `u64` newtype with checked arithmetic, parsing and printing by a table of units.
///
/// The `+`, `-` and `*` operators panic on overflow in every build: an overflow here is a programmer's
/// mistake. Code that handles outside values uses the `checked_*` methods.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $base:literal, $quantity:literal, $units:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(u64);

        impl $name {
            /// The value zero.
            pub const ZERO: Self = Self(0);
            /// The largest value.
            pub const MAX: Self = Self(u64::MAX);
            /// The units in text, smallest first.
            pub const UNITS: &'static [$crate::Unit] = $units;
            /// The name of this quantity in messages.
            pub const NAME: &'static str = $quantity;

            #[doc = concat!("A quantity of `value` ", $base, ".")]
            #[inline]
            pub const fn new(value: u64) -> Self {
                Self(value)
            }

            #[doc = concat!("The value in ", $base, ".")]
            #[inline]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The sum, or `None` if it does not fit.
            #[inline]
            pub const fn checked_add(self, other: Self) -> Option<Self> {
                match self.0.checked_add(other.0) {
                    Some(sum) => Some(Self(sum)),
                    None => None,
                }
            }

            /// The difference, or `None` if it would be negative.
            #[inline]
            pub const fn checked_sub(self, other: Self) -> Option<Self> {
                match self.0.checked_sub(other.0) {
                    Some(difference) => Some(Self(difference)),
                    None => None,
                }
            }

            /// The product with a plain number, or `None` if it does not fit.
            #[inline]
            pub const fn checked_mul(self, times: u64) -> Option<Self> {
                match self.0.checked_mul(times) {
                    Some(product) => Some(Self(product)),
                    None => None,
                }
            }

            /// The difference, or zero if it would be negative.
            #[inline]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            /// The sum, or [`Self::MAX`] if it does not fit.
            #[inline]
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// Returns true if the value is zero.
            #[inline]
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }
        }

        impl core::ops::Add for $name {
            type Output = Self;
            #[inline]
            fn add(self, other: Self) -> Self {
                self.checked_add(other).expect(concat!($quantity, " overflows on addition"))
            }
        }

        impl core::ops::AddAssign for $name {
            #[inline]
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl core::ops::Sub for $name {
            type Output = Self;
            #[inline]
            fn sub(self, other: Self) -> Self {
                self.checked_sub(other).expect(concat!($quantity, " would become negative"))
            }
        }

        impl core::ops::SubAssign for $name {
            #[inline]
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl core::ops::Mul<u64> for $name {
            type Output = Self;
            #[inline]
            fn mul(self, times: u64) -> Self {
                self.checked_mul(times).expect(concat!($quantity, " overflows on multiplication"))
            }
        }

        impl core::ops::Div<u64> for $name {
            type Output = Self;
            #[inline]
            fn div(self, parts: u64) -> Self {
                Self(self.0 / parts)
            }
        }

        impl core::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
                values.fold(Self::ZERO, |sum, value| sum + value)
            }
        }

        impl core::str::FromStr for $name {
            type Err = $crate::ParseError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::parse::parse(text, Self::NAME, Self::UNITS).map(Self)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                $crate::parse::print(self.0, Self::UNITS, out)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, out)
            }
        }
    };
}

pub(crate) use quantity;
