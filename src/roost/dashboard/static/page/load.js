/** Data of a view: loaded once, again on request, or every few seconds. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api.js";
import { connection } from "./stream.js";

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
  const isBusy = useRef(false);
  const latest = useRef(load);
  latest.current = load;
  const again = () => setTurn((before) => before + 1);
  useEffect(() => {
    const stop = new AbortController();
    isBusy.current = true;
    setState((before) => ({ ...before, isLoading: true }));
    latest.current(stop.signal).then(
      (data) => {
        if (stop.signal.aborted) return;
        isBusy.current = false;
        setState({ data, error: null, isLoading: false });
      },
      (error) => {
        if (stop.signal.aborted) return;
        isBusy.current = false;
        const shown = error instanceof ApiError ? error : new ApiError(0, String(error?.message ?? error));
        setState((before) => ({ data: before.data, error: shown, isLoading: false }));
      },
    );
    return () => stop.abort();
  }, [...keys, turn]);
  useEffect(() => {
    if (!everyMs) return undefined;
    // A slow answer is not ended by the next turn: otherwise no answer would ever arrive.
    const timer = setInterval(() => document.hidden || isBusy.current || again(), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  const { isLive } = connection.value;
  useEffect(() => {
    if (isLive && state.error?.status === 0) again(); // the server is back
  }, [isLive]);
  return { ...state, again };
}
