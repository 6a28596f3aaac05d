/** How many more instances of each flavor fit: questions to the server, two at a time. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../page/api.js";
import { className, counted } from "../page/format.js";

const AT_ONCE = 2; // the server works on two long questions at a time

/** @typedef {{name: string, request: any}} Wish a stored flavor, or the shape of a stored request */
/**
 * @typedef {object} Change of the fleet, for a question only
 * @property {string[]} [without_zones]
 * @property {{like: string, count: number}[]} [add_hosts]
 */

/**
 * The wishes to count: the shapes of stored requests, and the stored flavors without one.
 * @param {{flavors: any[], shapes?: any[]}} answer of `GET /v1/flavors`
 * @returns {Wish[]}
 */
export function wishesOf({ flavors, shapes = [] }) {
  const names = new Set(shapes.map((shape) => shape.flavor.name));
  /** @type {Wish[]} */
  const wishes = shapes.map((shape) => ({ name: nameOf(shape), request: shape }));
  for (const flavor of flavors) {
    if (!names.has(flavor.name)) wishes.push({ name: flavor.name, request: { flavor } });
  }
  return wishes;
}

/** The name of a flavor, with what a request asks for besides. @param {any} shape */
function nameOf(shape) {
  /** @type {Record<string, number>} */
  const more = {};
  for (const group of shape.groups ?? []) {
    for (const [name, amount] of Object.entries(group.resources ?? {})) more[name] = (more[name] ?? 0) + amount;
  }
  const parts = Object.entries(more).map(([name, amount]) => `${amount} ${name}`);
  const zone = shape.availability_zone ? ` in ${shape.availability_zone}` : "";
  return [shape.flavor.name || "no name", ...parts].join(" + ") + zone;
}

/**
 * Count wishes, and report each answer as it comes.
 * @param {Wish[]} wishes @param {Change | null} change @param {AbortSignal} signal
 * @param {(at: number, answer: any) => void} report an answer, or the error instead of it
 */
async function countAll(wishes, change, signal, report) {
  let next = 0;
  const work = async () => {
    while (next < wishes.length && !signal.aborted) {
      const at = next;
      next += 1;
      const body = { request: wishes[at]?.request, by: ["zone"], ...change };
      const answer = await call("POST", "/capacity", { body, signal }).catch((error) => error);
      if (!signal.aborted) report(at, answer);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/**
 * The answers for wishes, in their order; undefined while the server counts.
 * @param {Wish[]} wishes @param {Change | null} change @param {number} turn another number counts again
 * @returns {any[]}
 */
export function useCounts(wishes, change, turn = 0) {
  const [answers, setAnswers] = useState(/** @type {any[]} */ ([]));
  const key = JSON.stringify([wishes.map((wish) => wish.name), change, turn]);
  useEffect(() => {
    const stop = new AbortController();
    setAnswers([]);
    void countAll(wishes, change, stop.signal, (at, answer) =>
      setAnswers((before) => {
        const after = [...before];
        after[at] = answer;
        return after;
      }),
    );
    return () => stop.abort();
  }, [key]);
  return answers;
}

/** The resource that runs out first, or the reason why none fits. @param {any} answer of a question */
export function shortageOf(answer) {
  const first = answer.exhausted[0];
  if (first) return first.resource_classes.map(className).join(" and ") || first.reason;
  const unfit = answer.unfit[0];
  return unfit ? `${counted(unfit.hosts, "host")} ${unfit.reason}` : "no hosts";
}
