/** Data of a view: loaded once, again on request, or every few seconds. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api.js";

/**
 * @template T
 * @typedef {{data: T | null, error: ApiError | null, isLoading: boolean, again: () => void}} Loaded
 */

/**
 * Load data whenever a key changes, and perhaps every few seconds; an earlier answer stays until the next one.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {unknown[]} keys
 * @param {{everyMs?: number}} [options]
 * @returns {Loaded<T>}
 */
export function useLoad(load, keys, { everyMs = 0 } = {}) {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState(
    /** @type {{data: T | null, error: ApiError | null, isLoading: boolean}} */ ({
      data: null,
      error: null,
      isLoading: true,
    }),
  );
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    const stop = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    latest.current(stop.signal).then(
      (data) => stop.signal.aborted || setState({ data, error: null, isLoading: false }),
      (error) => {
        if (stop.signal.aborted) return;
        const shown = error instanceof ApiError ? error : new ApiError(0, String(error?.message ?? error));
        setState((before) => ({ data: before.data, error: shown, isLoading: false }));
      },
    );
    return () => stop.abort();
  }, [...keys, turn]);
  useEffect(() => {
    if (!everyMs) return undefined;
    const timer = setInterval(() => document.hidden || setTurn((before) => before + 1), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return { ...state, again: () => setTurn((before) => before + 1) };
}
