//! The inverse of the normal distribution function.

use super::special::horner;

/// `Φ⁻¹(p)` for `0 < p < 1`, infinite at the ends. Wichura's algorithm AS 241 (1988), about 1e-15 relative.
pub fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * horner(&CENTRE_P, r) / horner(&CENTRE_Q, r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail <= 0.0 {
        return f64::INFINITY.copysign(q);
    }
    let r = (-libm::log(tail)).sqrt();
    let x = if r <= 5.0 {
        horner(&MIDDLE_P, r - 1.6) / horner(&MIDDLE_Q, r - 1.6)
    } else {
        horner(&FAR_P, r - 5.0) / horner(&FAR_Q, r - 5.0)
    };
    x.copysign(q)
}

const CENTRE_P: [f64; 8] = [
    3.387_132_872_796_366_5,
    1.331_416_678_917_843_8e2,
    1.971_590_950_306_551_3e3,
    1.373_169_376_550_946e4,
    4.592_195_393_154_987e4,
    6.726_577_092_700_87e4,
    3.343_057_558_358_813e4,
    2.509_080_928_730_122_7e3,
];
const CENTRE_Q: [f64; 8] = [
    1.0,
    4.231_333_070_160_091e1,
    6.871_870_074_920_579e2,
    5.394_196_021_424_751e3,
    2.121_379_430_158_659_7e4,
    3.930_789_580_009_271e4,
    2.872_908_573_572_194_3e4,
    5.226_495_278_852_854e3,
];
const MIDDLE_P: [f64; 8] = [
    1.423_437_110_749_683_5,
    4.630_337_846_156_546,
    5.769_497_221_460_691,
    3.647_848_324_763_204_5,
    1.270_458_252_452_368_4,
    2.417_807_251_774_506e-1,
    2.272_384_498_926_918_4e-2,
    7.745_450_142_783_414e-4,
];
const MIDDLE_Q: [f64; 8] = [
    1.0,
    2.053_191_626_637_759,
    1.676_384_830_183_803_8,
    6.897_673_349_851e-1,
    1.481_039_764_274_800_8e-1,
    1.519_866_656_361_645_7e-2,
    5.475_938_084_995_345e-4,
    1.050_750_071_644_416_9e-9,
];
const FAR_P: [f64; 8] = [
    6.657_904_643_501_103,
    5.463_784_911_164_114,
    1.784_826_539_917_291_3,
    2.965_605_718_285_048_7e-1,
    2.653_218_952_657_612_4e-2,
    1.242_660_947_388_078_4e-3,
    2.711_555_568_743_487_6e-5,
    2.010_334_399_292_288_1e-7,
];
const FAR_Q: [f64; 8] = [
    1.0,
    5.998_322_065_558_88e-1,
    1.369_298_809_227_358e-1,
    1.487_536_129_085_061_5e-2,
    7.868_691_311_456_133e-4,
    1.846_318_317_510_054_8e-5,
    1.421_511_758_316_446e-7,
    2.044_263_103_389_939_8e-15,
];

#[cfg(test)]
mod tests {
    use super::super::special::normal_cdf;
    use super::*;

    #[test]
    fn quantiles_match_fifty_digit_values() {
        for (p, x) in [
            (1e-300, -37.0470962993612),
            (1e-40, -13.31092137142517),
            (1e-12, -7.034483825301132),
            (1e-05, -4.264890793922825),
            (0.01, -2.326347874040841),
            (0.075, -1.439531470938456),
            (0.2, -0.8416212335729142),
            (0.61, 0.27931903444745415),
            (0.93, 1.475791028179171),
            (0.999, 3.090232306167813),
        ] {
            let q = normal_quantile(p);
            assert!((q - x).abs() <= 1e-15 * x.abs(), "quantile({p}) = {q}, not {x}");
        }
        assert_eq!(normal_quantile(0.5), 0.0);
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
    }

    #[test]
    fn quantile_inverts_the_distribution_function() {
        for i in 1..2000 {
            let p = f64::from(i) / 2000.0;
            let back = normal_cdf(normal_quantile(p));
            assert!((back - p).abs() <= 1e-15, "{p} came back as {back}");
        }
    }
}
