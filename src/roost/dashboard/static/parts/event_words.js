/** Events in plain words. */

const HIDDEN = new Set(["request_id", "user", "project"]);

/** `live_migrate.done` → `live migrate done`. @param {string} kind */
export const kindText = (kind) => kind.replace(/\.asked$/, ".requested").replace(/[._]/g, " ");

/** Return whether an event is a failure. @param {string} kind */
export const isFailure = (kind) => /\.(failed|stayed|gone|lost|cancelled)$/.test(kind);

/** The details of an event in words: `to node-2, from node-1`. @param {Record<string, string>} details */
export function detailsText(details) {
  const { host, source, problem, ...rest } = details;
  const words = Object.entries(rest)
    .filter(([name, value]) => value && !HIDDEN.has(name))
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${value.replaceAll("_", " ")}`);
  if (host) words.unshift(source ? `from ${source} to ${host}` : `on ${host}`);
  else if (source) words.unshift(`from ${source}`);
  if (problem) words.push(problem.replace(/^No valid host was found\. /, ""));
  return words.join(", ");
}
