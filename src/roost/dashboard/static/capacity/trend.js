/** The trend of a series by robust regression, and the days until an amount is used up. */

const DAY_S = 86_400;
const POINTS_MIN = 8;
const SPAN_MIN_S = 300;
const Z = 1.645; // 90 % of a normal distribution are within this number of deviations

/**
 * @typedef {object} Trend
 * @property {number} perDay the median of the slopes of all pairs of points
 * @property {number} low lower bound of the slope, with 95 % confidence
 * @property {number} high upper bound
 * @property {number} at time of the last point, seconds since the epoch
 * @property {number} value of the line at this time
 * @property {number} points known values
 */
/** @typedef {{days: number, soonest: number, latest: number}} DaysLeft Infinity: never at this rate */

/**
 * The trend of a series after Theil and Sen; outliers and steps change it little.
 *
 * The interval is that of Sen, from the variance of Kendall's S. Neighbouring points of a fleet are alike, so the
 * number of points counts less: the variance grows with the correlation of neighbours.
 * @param {number[]} times seconds since the epoch, rising
 * @param {(number | null)[]} values null: unknown
 * @returns {Trend | null} null: too few points
 */
export function trendOf(times, values) {
  /** @type {{time: number, value: number}[]} */
  const points = [];
  times.forEach((time, at) => {
    const value = values[at];
    if (value !== null && value !== undefined) points.push({ time, value });
  });
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last || points.length < POINTS_MIN || last.time - first.time < SPAN_MIN_S) return null;
  /** @type {number[]} */
  const slopes = [];
  points.forEach((left, at) => {
    for (const right of points.slice(at + 1)) slopes.push((right.value - left.value) / (right.time - left.time));
  });
  slopes.sort((left, right) => left - right);
  const slope = medianOf(slopes);
  const atLast = points.map(({ time, value }) => value - slope * (time - last.time));
  const value = medianOf([...atLast].sort((left, right) => left - right));
  const residuals = atLast.map((each) => each - value);
  const count = points.length;
  const found = neighbourCorrelation(residuals);
  // Residuals of a fitted line look less correlated than they are; the second term corrects that.
  const correlation = Math.max(0, Math.min(0.98, found > 0 ? found + (1 + 4 * found) / count : 0));
  const inflation = (1 + correlation) / (1 - correlation);
  const deviation = Math.sqrt(((count * (count - 1) * (2 * count + 5)) / 18) * inflation);
  const margin = (Z * deviation) / 2;
  const bound = (/** @type {number} */ at) =>
    /** @type {number} */ (slopes[Math.max(0, Math.min(slopes.length - 1, Math.round(at)))]);
  const middle = (slopes.length - 1) / 2;
  return {
    perDay: slope * DAY_S,
    low: bound(middle - margin) * DAY_S,
    high: bound(middle + margin) * DAY_S,
    at: last.time,
    value,
    points: count,
  };
}

/** The median of sorted numbers. @param {number[]} sorted */
function medianOf(sorted) {
  const middle = sorted.length >> 1;
  const upper = /** @type {number} */ (sorted[middle]);
  return sorted.length % 2 ? upper : (upper + /** @type {number} */ (sorted[middle - 1])) / 2;
}

/** The correlation of each number with the one before; 0: they do not vary. @param {number[]} numbers around 0 */
function neighbourCorrelation(numbers) {
  const mean = numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
  let above = 0;
  let below = 0;
  numbers.forEach((each, at) => {
    below += (each - mean) ** 2;
    const before = numbers[at - 1];
    if (before !== undefined) above += (each - mean) * (before - mean);
  });
  return below > 0 ? above / below : 0;
}

/** The value of a line through the last point of the trend. @param {Trend} trend @param {number} perDay @param {number} time */
export const lineAt = (trend, perDay, time) => trend.value + (perDay * (time - trend.at)) / DAY_S;

/**
 * The days until a free amount is used up.
 * @param {number} free
 * @param {Trend} trend of the used amount
 * @returns {DaysLeft}
 */
export function daysLeft(free, trend) {
  const until = (/** @type {number} */ perDay) => (free <= 0 ? 0 : perDay > 0 ? free / perDay : Infinity);
  return { days: until(trend.perDay), soonest: until(trend.high), latest: until(trend.low) };
}

/** `12.4` → `12 days`. @param {number} days */
export function daysText(days) {
  if (days > 3650) return "more than 10 years";
  if (days >= 730) return `${Math.round(days / 365)} years`;
  if (days >= 2) return `${Math.round(days)} days`;
  if (days >= 2 / 24) return `${Math.round(24 * days)} hours`;
  return days > 0 ? "less than 2 hours" : "none: it is full";
}

/** `9 days`, `17 days` → `9 to 17 days`. @param {string} early @param {string} late */
function rangeText(early, late) {
  if (early === late) return "";
  const [, number, unit] = /^(\d+) (.*)$/.exec(early) ?? [];
  return unit && late.endsWith(` ${unit}`) ? `${number} to ${late}` : `${early} to ${late}`;
}

/** Days left with their uncertainty, in words. @param {DaysLeft} left */
export function leftText({ days, soonest, latest }) {
  if (days === 0) return { main: daysText(0), more: "" };
  if (days === Infinity) {
    const more = soonest === Infinity ? "" : `${daysText(soonest)} at the earliest`;
    return { main: "no end in sight", more };
  }
  return {
    main: daysText(days),
    more: rangeText(daysText(soonest), latest === Infinity ? "no end" : daysText(latest)),
  };
}
