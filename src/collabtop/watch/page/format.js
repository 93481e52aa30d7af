// Numbers and times as text, verdicts, and the interval of a mean.

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
  const total = Math.max(0, Math.round(seconds));
  if (total < 60) return `${total} s`;
  const minutes = Math.floor(total / 60);
  return minutes < 60 ? `${minutes} min ${total % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// The 95% Wilson interval, the same as `collabtop.stats.wilson_interval` (tests/watch/test_page.py compares them).
export function interval(value, pulls) {
  const weight = (Z * Z) / pulls;
  const centre = (value + weight / 2) / (1 + weight);
  const half = (Z / (1 + weight)) * Math.sqrt(Math.max(0, value * (1 - value)) / pulls + weight / (4 * pulls));
  return [Math.max(0, Math.min(value, centre - half)), Math.min(1, Math.max(value, centre + half))];
}

export function ratio(large, small) {
  const value = large / small;
  return value >= 10 ? String(Math.round(value)) : value.toFixed(1);
}
