// Numbers, times and verdicts as people read them.

export const VERDICTS = ["open", "accepted", "rejected", "inside"];
const Z = 1.959963984540054;
const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function whole(value) {
  return value === null || value === undefined ? "–" : WHOLE.format(value);
}

export function mean(value) {
  return value === null || value === undefined ? "–" : value.toFixed(4);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const all = Math.max(0, Math.round(seconds));
  if (all < 60) return `${all} s`;
  const minutes = Math.floor(all / 60);
  return minutes < 60 ? `${minutes} min ${all % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// The 95% Wilson interval; must match `collabtop.stats.wilson_interval`.
export function interval(value, pulls) {
  const share = (Z * Z) / pulls;
  const middle = (value + share / 2) / (1 + share);
  const reach = (Z / (1 + share)) * Math.sqrt(Math.max(0, value * (1 - value)) / pulls + share / (4 * pulls));
  return [Math.max(0, Math.min(value, middle - reach)), Math.min(1, Math.max(value, middle + reach))];
}

export function times(many, few, factor) {
  if (!many || !few) return "";
  const ratio = many / few;
  return ratio >= 10 ? `${Math.round(ratio)} ${factor}` : `${ratio.toFixed(1)} ${factor}`;
}
