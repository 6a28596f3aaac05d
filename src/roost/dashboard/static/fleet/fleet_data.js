/** The fleet in this page: loaded once, then kept by the changes of the stream. */
import { signal } from "@preact/signals";
import { ApiError, send } from "../page/api.js";
import { hasCredentials } from "../page/credentials.js";
import { takeEarly } from "../page/early.js";
import { followFleet, listen } from "../page/stream.js";
import { applyDelta, decodeFleet } from "./fleet_file.js";

/** @typedef {import("./fleet_file.js").Fleet} Fleet */

/** The fleet; another object after each load. */
export const fleet = signal(/** @type {Fleet | null} */ (null));
/** Counts the changes of the present fleet. */
export const changes = signal(0);
export const problem = signal(/** @type {ApiError | null} */ (null));

const RETRY_MS = 2000;
const GENERATION_HEADER = "x-roost-generation";
const watchers = new Set(/** @type {((hosts: number[]) => void)[]} */ ([]));
let names = { generation: "", list: /** @type {string[]} */ ([]) };
let rows = new Map(/** @type {[string, number][]} */ ([]));
let needed = 0; // position of the newest order to load the columns again
let loading = /** @type {Promise<void> | null} */ (null);
let isStarted = false;

/** The name of a host. @param {number} host */
export const nameOf = (host) => names.list[host] ?? "";

/** The host with a name; undefined: unknown. @param {string} name */
export function hostOf(name) {
  if (!name) return undefined;
  if (!rows.size) rows = new Map(names.list.map((each, at) => [each, at]));
  return rows.get(name);
}

/** All names, in the order of the columns. */
export const allNames = () => names.list;

/** Call a function with the hosts of each change. @param {(hosts: number[]) => void} watcher */
export function watch(watcher) {
  watchers.add(watcher);
  return () => {
    watchers.delete(watcher);
  };
}

/** Load the fleet and follow it, from the first view that needs it; a client that has not signed in must wait. */
export function follow() {
  if (!hasCredentials()) return;
  if (isStarted) {
    if (!fleet.peek()) void load();
    return;
  }
  isStarted = true;
  followFleet(() => fleet.peek()?.position ?? null);
  listen(({ type, data }) => {
    if (type === "fleet") apply(data);
    else if (type === "events_lost") void load();
  });
  void load();
}

/** Load the fleet; one load at a time. @param {number} [position] smallest one that suffices */
export function load(position = 0) {
  needed = Math.max(needed, position);
  loading ??= fetchFleet().finally(() => (loading = null));
  return loading;
}

async function fetchFleet() {
  try {
    const early = takeEarly();
    const buffer = await (await fetchColumns(early)).arrayBuffer();
    performance.mark("fleet-arrived");
    const found = decodeFleet(buffer);
    if (names.generation !== found.generation) {
      const text = await (await fetchNames(found.generation, early)).text();
      names = { generation: found.generation, list: text.split("\n").slice(0, found.hosts) };
      rows = new Map();
    }
    const isFirst = !fleet.peek();
    fleet.value = found;
    changes.value += 1;
    problem.value = null;
    if (found.position >= needed) needed = 0;
    else setTimeout(() => void load()); // The order came during this load.
    if (isFirst) followFleet(() => fleet.peek()?.position ?? null);
  } catch (error) {
    problem.value = error instanceof ApiError ? error : new ApiError(0, String(error));
    if (problem.value.status === 409) needed = 0; // A restored database may never get there.
    if (problem.value.status !== 401 && problem.value.status !== 403) setTimeout(() => void load(), RETRY_MS);
  }
}

/** The columns; those of an early request if it was successful. @param {import("../page/early.js").Early | null} early */
async function fetchColumns(early) {
  const first = needed ? null : await early?.columns.catch(() => null);
  return first?.ok ? first : send("GET", "/fleet/columns", { query: { position: needed || null } });
}

/** The names of a generation. @param {string} generation @param {import("../page/early.js").Early | null} early */
async function fetchNames(generation, early) {
  const first = await early?.names.catch(() => null);
  if (first?.ok && first.headers.get(GENERATION_HEADER) === generation) return first;
  return send("GET", "/fleet/names", { query: { generation } });
}

/** @param {any} delta */
function apply(delta) {
  const present = fleet.peek();
  if (!present) return;
  const changed = applyDelta(present, delta);
  if (changed === null) void load(delta.position);
  else if (changed.length) {
    changes.value += 1;
    for (const watcher of watchers) watcher(changed);
  }
}
