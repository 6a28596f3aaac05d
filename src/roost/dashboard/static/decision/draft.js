/** A request on its way from one view to another. */

let draft = /** @type {any} */ (null);

/** @param {any} body for POST /v1/decisions */
export function keepDraft(body) {
  draft = body;
}

/** Return the request, once. */
export function takeDraft() {
  const result = draft;
  draft = null;
  return result;
}
