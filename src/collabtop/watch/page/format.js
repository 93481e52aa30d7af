// Numbers, dates and times as text, as the reader's locale writes them.

export const VERDICTS = ["open", "accepted", "rejected", "inside"];
export const VERDICT_TEXT = { open: "open", accepted: "accepted", rejected: "rejected", inside: "settled inside an agent" };
const WHOLE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
let MEAN, SIGNED;
const SIGNIFICANT = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const PERCENT = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 2 });
const missing = (value) => value === null || value === undefined || Number.isNaN(value);

// Rewards have so many digits after the point; null: six significant digits.
export function setDecimals(decimals) {
  const digits = decimals === null ? { maximumSignificantDigits: 6 } : { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  MEAN = new Intl.NumberFormat(undefined, digits);
  SIGNED = new Intl.NumberFormat(undefined, { ...digits, signDisplay: "exceptZero" });
}
setDecimals(4);

export const whole = (value) => (missing(value) ? "–" : WHOLE.format(value));
export const mean = (value) => (missing(value) ? "–" : MEAN.format(value));
export const signed = (value) => (missing(value) ? "–" : SIGNED.format(value));
export const significant = (value) => (missing(value) ? "–" : SIGNIFICANT.format(value));
export const percent = (value) => (missing(value) ? "–" : PERCENT.format(value));
export const range = (low, high) => (missing(low) ? "–" : low === high ? "exact" : `${mean(low)} to ${mean(high)}`);
export const dateTime = (seconds) => (missing(seconds) ? "–" : DATE.format(1000 * seconds));
export const clock = (seconds) => (missing(seconds) ? "–" : CLOCK.format(1000 * seconds));

// Costs have no currency: enough digits that a small one is not 0.
export function money(value) {
  if (missing(value)) return "–";
  const digits = value !== 0 && Math.abs(value) < 1 ? { maximumSignificantDigits: 3 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return new Intl.NumberFormat(undefined, digits).format(value);
}

export function duration(seconds) {
  if (missing(seconds) || !Number.isFinite(seconds)) return "–";
  const total = Math.max(0, Math.round(seconds));
  if (total < 60) return `${total} s`;
  const minutes = Math.floor(total / 60);
  return minutes < 60 ? `${minutes} min ${total % 60} s` : `${whole(Math.floor(minutes / 60))} h ${minutes % 60} min`;
}

export function ratio(large, small) {
  const value = large / small;
  return value >= 10 ? whole(value) : significant(Math.round(value * 10) / 10);
}
