/** Calls of the API, and the session of this browser. */
import { signal } from "@preact/signals";
import { credentials, fact, keepKey } from "./credentials.js";

/**
 * @typedef {object} Session
 * @property {string} user_id
 * @property {string} project_id
 * @property {string[]} roles
 * @property {boolean} is_system_scoped
 * @property {string[]} policies names of the policies that allow this client
 * @property {number | null} expires_at_s
 * @property {boolean} [is_plain_http]
 */
/** @typedef {Record<string, string | number | boolean | null | undefined>} Query */

const TIMEOUT_MS = 60_000;

export const version = fact("version");

/** The session: null: signed out, undefined before the first answer. */
export const session = signal(/** @type {Session | null | undefined} */ (undefined));

/** An answer of the server that is an error, or no answer. */
export class ApiError extends Error {
  /**
   * @param {number} status of HTTP; 0: the server did not answer
   * @param {string} text in plain words
   * @param {any} problem the body of the answer
   */
  constructor(status, text, problem = {}) {
    super(text);
    this.status = status;
    this.problem = problem;
  }
}

/** Return whether a policy allows this client to act. @param {string} policy such as `hosts:drain` */
export function may(policy) {
  return session.value?.policies.includes(`roost:${policy}`) ?? false;
}

/**
 * Build a path with its query; values that are empty are left out.
 * @param {string} path below /v1
 * @param {Query} [query]
 */
export function urlOf(path, query = {}) {
  const parts = Object.entries(query)
    .filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  return `/v1${path}${parts.length ? `?${parts.join("&")}` : ""}`;
}

/**
 * Call the API and return its answer.
 * @param {string} method
 * @param {string} path below /v1
 * @param {{query?: Query, body?: unknown, signal?: AbortSignal, headers?: Record<string, string>}} [options]
 * @returns {Promise<any>} the body: an object of JSON, or null
 */
export async function call(method, path, options = {}) {
  const response = await send(method, path, options);
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/**
 * Call the API and return the response; it is never an error.
 * @param {string} method
 * @param {string} path below /v1
 * @param {{query?: Query, body?: unknown, signal?: AbortSignal, headers?: Record<string, string>}} [options]
 */
export async function send(method, path, { query = {}, body, signal: stop, headers = {} } = {}) {
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  /** @type {RequestInit} */
  const init = {
    method,
    headers: { ...credentials(), ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    signal: stop ? AbortSignal.any([stop, limit]) : limit,
    credentials: "same-origin",
    cache: "no-store",
  };
  if (body !== undefined) init.body = JSON.stringify(body);
  let response;
  try {
    response = await fetch(urlOf(path, query), init);
  } catch (error) {
    if (stop?.aborted) throw error;
    throw new ApiError(0, limit.aborted ? "The server did not answer in a minute." : "The server does not answer.");
  }
  if (response.ok) return response;
  throw await errorOf(response);
}

/** @param {Response} response */
export async function errorOf(response) {
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401) endSession();
  const text = problem.detail || problem.title || `The server answered ${response.status}.`;
  return new ApiError(response.status, text, problem);
}

/** Load the session of this browser. */
export async function loadSession() {
  try {
    session.value = await call("GET", "/session");
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) session.value = null;
    else throw error;
  }
}

/** Sign in. @param {string} token */
export async function signIn(token) {
  const answer = await call("POST", "/session", { headers: { "x-auth-token": token } });
  keepKey(answer.key);
  session.value = answer;
}

/** Sign out: end the session, and remove its key from this browser. */
export async function signOut() {
  try {
    await send("DELETE", "/session");
  } finally {
    endSession();
  }
}

function endSession() {
  keepKey("");
  if (session.value) session.value = null;
}
