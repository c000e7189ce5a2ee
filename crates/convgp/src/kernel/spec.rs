//! Kernels as data: what a spec file says.

use super::{Additive, Dims, Kernel, KernelError, Product, RadialFn, Stationary, Sum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A lengthscale: given, per element, or found from the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number, one number per element, \"median\" or { median = factor }")]
pub enum Lengthscale {
    /// One number for all elements.
    One(f64),
    /// One number per element.
    Each(Vec<f64>),
    /// `"median"`: the median distance between views sampled from the training data.
    Named(Median),
    /// `{ median = 0.5 }`: so many times that distance.
    TimesMedian {
        /// The factor.
        median: f64,
    },
}

/// The word `median`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Median {
    /// Median distance between sampled views.
    Median,
}

impl Lengthscale {
    /// Whether it is found from training data.
    pub fn is_from_data(&self) -> bool {
        matches!(self, Lengthscale::Named(_) | Lengthscale::TimesMedian { .. })
    }
}

impl Default for Lengthscale {
    fn default() -> Self {
        Lengthscale::One(1.0)
    }
}

/// Declares the radial families and, with them, [`KernelSpec`]: a new family is its file and a line below.
macro_rules! kernel_types {
    ($($(#[$doc:meta])* $family:ident = $name:literal;)*) => {
        /// A radial family, by the name a spec uses.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum Family {
            $($(#[$doc])* #[serde(rename = $name)] $family,)*
        }

        impl Family {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$family),*];

            /// The name in a spec.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$family => $name,)*
                }
            }

            /// The function.
            pub fn radial(self) -> &'static dyn RadialFn {
                match self {
                    $(Self::$family => &super::$family,)*
                }
            }
        }

        /// A kernel: in a file, a table whose `type` says which one.
        ///
        /// ```
        /// use convgp::kernel::{KernelSpec, Lengthscale};
        ///
        /// let spec: KernelSpec = toml::from_str("type = 'rbf'\nvariance = 5.0\nlengthscale = 'median'")?;
        /// let KernelSpec::Rbf(rbf) = &spec else { panic!("another type") };
        /// assert_eq!(rbf.variance, Some(5.0));
        /// assert!(spec.wants_median());
        /// # Ok::<(), toml::de::Error>(())
        /// ```
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "type", rename_all = "kebab-case")]
        pub enum KernelSpec {
            $($(#[$doc])* #[serde(rename = $name)] $family(RadialSpec),)*
            /// The sum of some kernels.
            Sum(TermsSpec),
            /// The product of some kernels.
            Product(TermsSpec),
            /// One function per element of the view, with shared parameters (paper section 2.3).
            Additive(AdditiveSpec),
            /// A sum of one kernel per colour channel of a colour patch, each with its own variance and lengthscale (paper
            /// section 3.4, factorised weights).
            Channels(ChannelsSpec),
        }

        impl KernelSpec {
            /// A kernel of a radial family.
            pub fn of_family(family: Family, spec: RadialSpec) -> Self {
                match family {
                    $(Family::$family => Self::$family(spec),)*
                }
            }

            /// Family and fields of a plain radial kernel.
            fn radial_parts(&self) -> Option<(Family, &RadialSpec)> {
                match self {
                    $(Self::$family(spec) => Some((Family::$family, spec)),)*
                    _ => None,
                }
            }

            /// Initial variance and lengthscale. Sums and products have none: their terms have their own.
            fn scales_mut(&mut self) -> Option<(&mut Option<f64>, &mut Option<Lengthscale>)> {
                match self {
                    $(Self::$family(RadialSpec { variance, lengthscale, .. }))|*
                    | Self::Additive(AdditiveSpec { variance, lengthscale, .. })
                    | Self::Channels(ChannelsSpec { variance, lengthscale, .. }) => Some((variance, lengthscale)),
                    Self::Sum(_) | Self::Product(_) => None,
                }
            }

            /// The same, to be read.
            fn scales(&self) -> (Option<f64>, Option<&Lengthscale>) {
                match self {
                    $(Self::$family(RadialSpec { variance, lengthscale, .. }))|*
                    | Self::Additive(AdditiveSpec { variance, lengthscale, .. })
                    | Self::Channels(ChannelsSpec { variance, lengthscale, .. }) => (*variance, lengthscale.as_ref()),
                    Self::Sum(_) | Self::Product(_) => (None, None),
                }
            }
        }
    };
}

kernel_types! {
    /// Squared exponential.
    Rbf = "rbf";
    /// Matern-1/2.
    Matern12 = "matern12";
    /// Matern-3/2.
    Matern32 = "matern32";
    /// Matern-5/2.
    Matern52 = "matern52";
}

/// Fields of a kernel of a radial family.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RadialSpec {
    /// Initial variance, 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance: Option<f64>,
    /// Initial lengthscale, 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengthscale: Option<Lengthscale>,
    /// One lengthscale per element.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ard: bool,
    /// The elements of the view it reads; all (but appended coordinates) when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dims: Option<Dims>,
}

/// Fields of a sum or product.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TermsSpec {
    /// The parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<KernelSpec>,
}

/// Fields of an additive kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdditiveSpec {
    /// Initial variance, 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance: Option<f64>,
    /// Initial lengthscale, 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengthscale: Option<Lengthscale>,
    /// The elements of the view it reads; all (but appended coordinates) when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dims: Option<Dims>,
    /// Family of the function, RBF when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Family>,
}

/// Fields of a sum over colour channels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelsSpec {
    /// Initial variance of every part, 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance: Option<f64>,
    /// Initial lengthscale of every part, 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengthscale: Option<Lengthscale>,
    /// Family of the parts, RBF when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Family>,
}

/// What a kernel may ask about the views it will read.
#[derive(Debug, Clone, Copy)]
pub struct ViewDims {
    /// Numbers in a view, without appended coordinates.
    pub len: usize,
    /// Interleaved colour channels in a view.
    pub channels: usize,
}

impl KernelSpec {
    /// A kernel of a radial family with these initial values.
    pub fn radial(family: Family, variance: f64, lengthscale: f64) -> Self {
        let (variance, lengthscale) = (Some(variance), Some(Lengthscale::One(lengthscale)));
        Self::of_family(family, RadialSpec { variance, lengthscale, ..RadialSpec::default() })
    }

    /// The kernel itself. `median` gives the lengthscale that `"median"` stands for, when it is known.
    pub fn build(&self, views: ViewDims, median: Option<f64>) -> Result<Arc<dyn Kernel>, KernelError> {
        let build_all =
            |terms: &[Self]| -> Result<Vec<_>, _> { terms.iter().map(|t| t.build(views, median)).collect() };
        let kernel: Arc<dyn Kernel> = match self {
            Self::Sum(spec) => Arc::new(Sum::new(build_all(&spec.terms)?)?),
            Self::Product(spec) => Arc::new(Product::new(build_all(&spec.terms)?)?),
            Self::Additive(spec) => Arc::new(spec.build(views, median)?),
            Self::Channels(spec) => Arc::new(spec.build(views, median)?),
            radial => {
                let (family, spec) = radial.radial_parts().expect("all other types are radial");
                Arc::new(spec.build(family, views.len, median)?)
            }
        };
        kernel.check_len(views.len)?;
        Ok(kernel)
    }

    /// A factor over the coordinates appended to a view, `dims`: no variance of its own.
    pub fn build_location(&self, dims: Dims) -> Result<Arc<dyn Kernel>, KernelError> {
        let (family, spec) = self.radial_parts().ok_or(KernelError::LocationNotRadial)?;
        for (field, used) in [("variance", spec.variance.is_some()), ("dims", spec.dims.is_some())] {
            if used {
                return Err(KernelError::LocationField { field });
            }
        }
        let spec = RadialSpec { dims: Some(dims), ..spec.clone() };
        Ok(Arc::new(spec.build(family, dims.start + dims.len, None)?.without_variance()))
    }

    /// Whether a lengthscale is to be found from data.
    pub fn wants_median(&self) -> bool {
        let parts = match self {
            Self::Sum(TermsSpec { terms }) | Self::Product(TermsSpec { terms }) => &terms[..],
            _ => &[],
        };
        self.lengthscale().is_some_and(Lengthscale::is_from_data) || parts.iter().any(Self::wants_median)
    }

    /// The initial variance, if it is given; sums and products have none of their own.
    pub fn variance(&self) -> Option<f64> {
        self.scales().0
    }

    /// The initial lengthscale, if it is given; sums and products have none of their own.
    pub fn lengthscale(&self) -> Option<&Lengthscale> {
        self.scales().1
    }

    /// Sets the initial variance; sums and products have none of their own and stay as they are.
    pub fn set_variance(&mut self, variance: f64) {
        if let Some((own, _)) = self.scales_mut() {
            *own = Some(variance);
        }
    }

    /// Sets the initial lengthscale; sums and products have none of their own and stay as they are.
    pub fn set_lengthscale(&mut self, lengthscale: Lengthscale) {
        if let Some((_, own)) = self.scales_mut() {
            *own = Some(lengthscale);
        }
    }

    /// Gives every `"median"` this value instead.
    pub fn replace_median(&mut self, lengthscale: f64) {
        self.for_each_scale(&mut |_, ell| {
            if ell.as_ref().is_some_and(Lengthscale::is_from_data) {
                *ell = Some(Lengthscale::One(lengthscale));
            }
        });
    }

    /// Gives absent fields the values they stand for.
    pub fn write_out_defaults(&mut self) {
        self.for_each_scale(&mut |variance, ell| {
            variance.get_or_insert(1.0);
            ell.get_or_insert_with(Lengthscale::default);
        });
        self.for_each(&mut |kernel| match kernel {
            Self::Additive(AdditiveSpec { of, .. }) | Self::Channels(ChannelsSpec { of, .. }) => {
                of.get_or_insert(Family::Rbf);
            }
            _ => {}
        });
    }

    /// This kernel and all its parts.
    fn for_each(&mut self, f: &mut dyn FnMut(&mut Self)) {
        f(self);
        if let Self::Sum(TermsSpec { terms }) | Self::Product(TermsSpec { terms }) = self {
            terms.iter_mut().for_each(|t| t.for_each(f));
        }
    }

    /// Variance and lengthscale of this kernel or its parts.
    fn for_each_scale(&mut self, f: &mut dyn FnMut(&mut Option<f64>, &mut Option<Lengthscale>)) {
        self.for_each(&mut |kernel| {
            if let Some((variance, lengthscale)) = kernel.scales_mut() {
                f(variance, lengthscale);
            }
        });
    }
}

impl RadialSpec {
    fn build(&self, family: Family, len: usize, median: Option<f64>) -> Result<Stationary, KernelError> {
        let dims = self.dims.unwrap_or(Dims::all(len));
        dims.check(len)?;
        let new = |ell| Stationary::new(family.radial(), dims, self.variance.unwrap_or(1.0), ell);
        match &self.lengthscale {
            Some(Lengthscale::Each(each)) => new(1.0).with_lengthscales(each.clone()),
            other if self.ard => new(1.0).with_lengthscales(vec![one(other, median)?; dims.len]),
            other => Ok(new(one(other, median)?)),
        }
    }
}

impl AdditiveSpec {
    fn build(&self, views: ViewDims, median: Option<f64>) -> Result<Additive, KernelError> {
        let radial = self.of.unwrap_or(Family::Rbf).radial();
        let dims = self.dims.unwrap_or(Dims::all(views.len));
        Ok(Additive::new(radial, dims, self.variance.unwrap_or(1.0), one(&self.lengthscale, median)?))
    }
}

impl ChannelsSpec {
    fn build(&self, views: ViewDims, median: Option<f64>) -> Result<Sum, KernelError> {
        let radial = self.of.unwrap_or(Family::Rbf).radial();
        let (variance, ell) = (self.variance.unwrap_or(1.0), one(&self.lengthscale, median)?);
        let part = |c| {
            let dims = Dims { start: c, len: views.len / views.channels, step: views.channels };
            Arc::new(Stationary::new(radial, dims, variance, ell)) as Arc<dyn Kernel>
        };
        Sum::new((0..views.channels).map(part).collect())
    }
}

/// A common lengthscale.
fn one(lengthscale: &Option<Lengthscale>, median: Option<f64>) -> Result<f64, KernelError> {
    match lengthscale {
        None => Ok(1.0),
        Some(Lengthscale::One(ell)) => Ok(*ell),
        Some(Lengthscale::Each(each)) => {
            Err(KernelError::LengthscaleCount { found: each.len(), expected: 1 })
        }
        Some(Lengthscale::Named(Median::Median)) => median.ok_or(KernelError::MedianWithoutData),
        Some(Lengthscale::TimesMedian { median: factor }) => {
            median.map(|m| factor * m).ok_or(KernelError::MedianWithoutData)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(text: &str) -> Result<Arc<dyn Kernel>, KernelError> {
        let spec: KernelSpec = toml::from_str(text).expect("valid TOML");
        spec.build(ViewDims { len: 6, channels: 3 }, Some(2.5))
    }

    #[test]
    fn specs_build_what_they_say() {
        assert_eq!(build("type = 'rbf'").unwrap().parameters().len(), 2);
        let median = build("type = 'rbf'\nlengthscale = 'median'").unwrap();
        assert_eq!(median.parameters()[1].values, [2.5]);
        let ard = build("type = 'matern32'\nard = true\nlengthscale = 2.0").unwrap();
        assert_eq!(ard.parameters()[1].values, [2.0; 6]);
        assert_eq!(build("type = 'channels'").unwrap().parameters().len(), 6);
        let sum = build(
            "type = 'sum'\nterms = [{ type = 'rbf', dims = { start = 0, len = 3 } }, { type = 'matern12', dims = { start = 3, len = 3 } }]",
        );
        let names: Vec<String> = sum.unwrap().parameters().into_iter().map(|p| p.name).collect();
        assert_eq!(names, ["0.variance", "0.lengthscale", "1.variance", "1.lengthscale"]);
    }

    #[test]
    fn mistakes_are_named() {
        assert!(matches!(build("type = 'sum'"), Err(KernelError::NoTerms { kind: "sum" })));
        let out = build("type = 'rbf'\ndims = { start = 4, len = 3 }").unwrap_err();
        assert_eq!(out, KernelError::DimsOutOfRange { start: 4, end: 7, len: 6 });
        assert!(matches!(
            build("type = 'rbf'\nlengthscale = [1.0, 2.0]"),
            Err(KernelError::LengthscaleCount { found: 2, expected: 6 })
        ));
    }

    #[test]
    fn mistakes_in_a_file_are_explained() {
        for (text, words) in [
            (
                "type = 'rbff'",
                "unknown variant `rbff`, expected one of `rbf`, `matern12`, `matern32`, `matern52`, `sum`",
            ),
            ("variance = 1.0", "missing field `type`"),
            (
                "type = 'rbf'\nlenghtscale = 1.0",
                "unknown field `lenghtscale`, expected one of `variance`, `lengthscale`, `ard`, `dims`",
            ),
            (
                "type = 'sum'\nvariance = 1.0\nterms = [{ type = 'rbf' }]",
                "unknown field `variance`, expected `terms`",
            ),
            ("type = 'rbf'\nterms = [{ type = 'rbf' }]", "unknown field `terms`"),
            ("type = 'channels'\nof = 'rbff'", "unknown variant `rbff`"),
            ("type = 'channels'\nard = true", "unknown field `ard`"),
            (
                "type = 'rbf'\nlengthscale = 'mean'",
                "expected a number, one number per element, \"median\" or { median = factor }",
            ),
        ] {
            let err = toml::from_str::<KernelSpec>(text).unwrap_err().to_string();
            assert!(err.contains(words), "{text}\ngave: {err}");
        }
    }

    #[test]
    fn specs_survive_a_round_trip_and_say_what_they_stand_for() {
        let text = "type = 'product'\nterms = [{ type = 'additive', dims = { start = 0, len = 2 } }, { type = 'matern32', ard = true, lengthscale = 'median' }]";
        let mut spec: KernelSpec = toml::from_str(text).unwrap();
        let round =
            |spec: &KernelSpec| -> KernelSpec { toml::from_str(&toml::to_string(spec).unwrap()).unwrap() };
        assert_eq!(round(&spec), spec);
        spec.write_out_defaults();
        spec.replace_median(2.0);
        let written = toml::to_string(&spec).unwrap();
        for line in ["variance = 1.0", "lengthscale = 1.0", "lengthscale = 2.0", "of = \"rbf\""] {
            assert!(written.contains(line), "{line} in\n{written}");
        }
        assert!(!spec.wants_median() && round(&spec) == spec);
    }
}
