"""Agreement among raters: coefficients, reliability, pairs of raters."""
