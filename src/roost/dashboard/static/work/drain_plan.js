/** The plan of a drain of one host or several, from the server. */
import { ApiError, call } from "../page/api.js";
import { compareNames } from "../page/format.js";
import { drainPlanOf } from "./sums.js";

/** @typedef {import("./sums.js").Move} Move */
/**
 * A plan; one with moves of other instances has its steps for the server, and its text.
 * @typedef {{services: string[], moves: Move[], problems: Record<string, string>, steps?: any[], text?: string, note?: string}} Plan
 */

const AT_A_TIME = 5; // requests; a browser has six connections

/** Return the services of nodes, and why others have none. @param {string[]} nodes @param {AbortSignal} signal */
async function servicesOf(nodes, signal) {
  /** @type {string[]} */
  const services = [];
  /** @type {Record<string, string>} */
  const problems = {};
  for (let at = 0; at < nodes.length; at += AT_A_TIME)
    await Promise.all(
      nodes.slice(at, at + AT_A_TIME).map(async (node) => {
        try {
          services.push((await call("GET", `/hosts/${encodeURIComponent(node)}`, { signal })).host);
        } catch (error) {
          if (!(error instanceof ApiError) || error.status === 0 || error.status === 401) throw error;
          problems[node] = error.message;
        }
      }),
    );
  return { services: [...new Set(services)].sort(compareNames), problems };
}

/**
 * Plan the drains of some nodes, one after the other.
 * @param {string[]} nodes @param {{atOnce: number, disable: boolean}} options @param {AbortSignal} signal
 * @returns {Promise<Plan>}
 */
export async function loadPlan(nodes, { atOnce, disable }, signal) {
  const { services, problems } = await servicesOf(nodes, signal);
  while (services.length) {
    const [first, ...others] = services;
    try {
      const body = { dry_run: true, at_once: atOnce, disable, with_hosts: others };
      const plan = await call("POST", `/hosts/${encodeURIComponent(String(first))}/drain`, { body, signal });
      const drained = services.filter((each) => !(each in plan.problems));
      return { services: drained, moves: plan.moves, problems: { ...problems, ...plan.problems } };
    } catch (error) {
      // The first host cannot be drained; the others may.
      if (!(error instanceof ApiError) || ![404, 409].includes(error.status)) throw error;
      if (error.problem?.type?.includes("not-supported")) throw error;
      problems[String(first)] = error.message;
      services.shift();
    }
  }
  return { services, moves: [], problems };
}

/**
 * Plan moves to empty some nodes; instances of other hosts make room if necessary.
 * @param {string[]} nodes @param {AbortSignal} signal @returns {Promise<Plan>}
 */
export async function loadRoomPlan(nodes, signal) {
  const { services, problems } = await servicesOf(nodes, signal);
  if (!services.length) return { services, moves: [], problems };
  const answer = await call("POST", "/plans/drain", { body: { hosts: services }, signal });
  return { services, problems, ...drainPlanOf(answer) };
}
