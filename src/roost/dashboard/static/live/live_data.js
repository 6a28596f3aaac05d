/** The events of the last minutes as rates, latencies and reasons, kept while the page is open. */
import { signal } from "@preact/signals-core";
import { mainReason } from "../decision/sentences.js";
import { detailsText, isFailure, kindText } from "../parts/event_words.js";

export const WINDOW_S = 600;
const STREAM_MAX = 500;
const STARTS_MAX = 5000;

/**
 * @typedef {object} Second
 * @property {number} at seconds since the epoch
 * @property {number} granted
 * @property {number} refused
 * @property {number[]} latencies seconds
 */
/** @typedef {{id: string, type: string, time: number, text: string, link: string, tone: string}} Line */

export const turn = signal(0);
/** @type {Second[]} */
export const seconds = [];
/** @type {Map<string, number>} */
export const reasons = new Map();
/** @type {{at: number, reason: string}[]} */
const refusals = [];
/** @type {Line[]} */
export const lines = [];
/** @type {Map<string, number>} */
const starts = new Map();

/** Take an event of the stream. @param {{type: string, data: any}} event @param {number} now seconds since the epoch */
export function take({ type, data }, now) {
  if (!data?.payload) return;
  const { payload, time_s: time, id } = data;
  if (type === "scheduler.select_destinations.start") {
    starts.set(id, time);
    if (starts.size > STARTS_MAX) starts.delete(/** @type {string} */ (starts.keys().next().value));
    return;
  }
  if (type === "scheduler.select_destinations.end") countDecision(payload, time, now);
  const line = lineOf(type, data);
  if (line) {
    lines.unshift(line);
    if (lines.length > STREAM_MAX) lines.pop();
  }
  turn.value += 1;
}

/** @param {any} payload @param {number} time @param {number} now */
function countDecision(payload, time, now) {
  const second = secondOf(Math.floor(now));
  if (payload.outcome === "granted") second.granted += 1;
  else second.refused += 1;
  const start = starts.get(payload.start_id);
  if (start !== undefined) {
    second.latencies.push(Math.max(0, time - start));
    starts.delete(payload.start_id);
  }
  if (payload.outcome === "refused") {
    const reason = mainReason(payload.reason) || payload.reason || "no reason";
    refusals.push({ at: now, reason });
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  forget(now);
}

/** @param {number} at @returns {Second} */
function secondOf(at) {
  const last = seconds.at(-1);
  if (last && last.at >= at) return last;
  const second = { at, granted: 0, refused: 0, latencies: [] };
  seconds.push(second);
  return second;
}

/** Forget what is older than the window. @param {number} now */
export function forget(now) {
  while (seconds[0] && seconds[0].at < now - WINDOW_S) seconds.shift();
  while (refusals[0] && refusals[0].at < now - WINDOW_S) {
    const reason = /** @type {{reason: string}} */ (refusals.shift()).reason;
    const left = (reasons.get(reason) ?? 1) - 1;
    if (left > 0) reasons.set(reason, left);
    else reasons.delete(reason);
  }
}

/**
 * The rates of the window, one value for each step.
 * @param {number} now @param {number} step seconds
 */
export function rates(now, step) {
  const end = Math.floor(now / step) * step;
  const count = Math.floor(WINDOW_S / step);
  const times = Array.from({ length: count }, (_, at) => end - (count - at) * step);
  const granted = new Array(count).fill(0);
  const refused = new Array(count).fill(0);
  /** @type {number[][]} */
  const latencies = Array.from({ length: count }, () => []);
  for (const second of seconds) {
    const at = Math.floor((second.at - (end - count * step)) / step);
    if (at < 0 || at >= count) continue;
    granted[at] += second.granted / step;
    refused[at] += second.refused / step;
    latencies[at]?.push(...second.latencies);
  }
  const quantile = (/** @type {number} */ part) =>
    latencies.map((values) =>
      values.length
        ? /** @type {number} */ (
            [...values].sort((left, right) => left - right)[
              Math.min(values.length - 1, Math.floor(part * values.length))
            ]
          )
        : null,
    );
  return { times, granted, refused, median: quantile(0.5), high: quantile(0.99) };
}

/** @param {string} type @param {any} data @returns {Line | null} */
function lineOf(type, data) {
  const { payload, time_s: time, id } = data;
  if (payload.about === "decision") {
    const isGranted = payload.outcome === "granted";
    const where = [...new Set(payload.placed.map((/** @type {any} */ each) => each.host))].join(", ");
    return {
      id,
      type: "decision",
      time,
      text: `${payload.flavor || "request"} ${isGranted ? `→ ${where}` : `✕ ${payload.reason}`}`,
      link: payload.decision_uuid ? `/decisions/${payload.decision_uuid}` : "",
      tone: isGranted ? "granted" : "refused",
    };
  }
  const details = detailsText(payload.told ?? {});
  if (payload.about === "change")
    return {
      id,
      type: "change",
      time,
      text: [kindText(type), payload.object, payload.user_id ? `by ${payload.user_id}` : "", details]
        .filter(Boolean)
        .join(" "),
      link: `/settings/changes?object=${encodeURIComponent(payload.object)}`,
      tone: "",
    };
  const link = payload.operation_uuid
    ? `/operations/${payload.operation_uuid}`
    : payload.instance_uuid
      ? `/instances/${payload.instance_uuid}`
      : "";
  return {
    id,
    type: "story",
    time,
    text: `${kindText(type)} ${details}`.trim(),
    link,
    tone: isFailure(type) ? "refused" : "",
  };
}
