/** The event stream of the server: one connection for a tab, ended while the tab is hidden. */
import { signal } from "@preact/signals";
import { createParser } from "eventsource-parser";
import { may, session, urlOf } from "./api.js";
import { credentials } from "./credentials.js";

/** @typedef {(event: {type: string, id: string | undefined, data: any}) => void} Listener */

const HIDDEN_MS = 5000; // a browser has six connections to a server, for all its tabs
const SILENT_MS = 60_000; // the server sends a comment at least this often
const WAIT_MAX_MS = 30_000;

/** Whether the page is live; since when it is or is not, in milliseconds since the epoch. */
export const connection = signal(
  /** @type {{isLive: boolean, sinceMs: number}} */ ({ isLive: false, sinceMs: Date.now() }),
);

/** Returns the position of the fleet that this page has; null: it needs no changes of the fleet. */
let fleetPosition = /** @type {() => number | null} */ (() => null);
const listeners = new Set(/** @type {Listener[]} */ ([]));
let stop = /** @type {AbortController | null} */ (null);
let lastId = "";
let wait = 1000;
let timer = 0;
let hiddenTimer = 0;

/** Receive events until the returned function is called. @param {Listener} listener */
export function listen(listener) {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** Follow the fleet from a position, too. @param {() => number | null} position */
export function followFleet(position) {
  fleetPosition = position;
  restart();
}

/** Whether the roles of the client allow the stream. */
export const mayListen = () => may("events:list");

/** Connect anew. */
export function restart() {
  stop?.abort();
  stop = null;
  clearTimeout(timer);
  if (session.peek() && mayListen() && !document.hidden) void run();
}

/** Connect while there is a session and the tab is visible. */
export function start() {
  session.subscribe((now) => (now ? restart() : stop?.abort()));
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) hiddenTimer = setTimeout(() => stop?.abort(), HIDDEN_MS);
    else if (!stop || stop.signal.aborted) restart();
  });
}

async function run() {
  const own = new AbortController();
  stop = own;
  let silence = 0;
  const alive = () => {
    clearTimeout(silence);
    silence = setTimeout(() => own.abort(), SILENT_MS);
  };
  try {
    const position = fleetPosition();
    const query = position === null ? {} : { fleet: true, after: position };
    const headers = { ...credentials(), ...(lastId ? { "last-event-id": lastId } : {}) };
    const response = await fetch(urlOf("/events", query), { headers, signal: own.signal, cache: "no-store" });
    if (response.status === 401) return;
    if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
    connection.value = { isLive: true, sinceMs: Date.now() };
    wait = 1000;
    const parser = createParser({ onEvent: publish });
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (alive(); ; alive()) {
      const { done, value } = await reader.read();
      if (done) break;
      parser.feed(decoder.decode(value, { stream: true }));
    }
  } catch {
    // Every end leads to a new connection below.
  } finally {
    clearTimeout(silence);
    if (stop === own) lose();
  }
}

function lose() {
  stop = null;
  if (connection.value.isLive) connection.value = { isLive: false, sinceMs: Date.now() };
  if (document.hidden || !session.peek()) return;
  timer = setTimeout(restart, wait * (0.75 + 0.5 * Math.random()));
  wait = Math.min(2 * wait, WAIT_MAX_MS);
}

/** @param {{event?: string | undefined, id?: string | undefined, data: string}} event */
function publish({ event, id, data }) {
  if (id) lastId = id;
  const shown = { type: event ?? "message", id, data: JSON.parse(data) };
  for (const listener of listeners) listener(shown);
}
