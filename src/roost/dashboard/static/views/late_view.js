/** A view whose modules are loaded when it is needed. */
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { h } from "preact";
import { ApiError } from "../page/api.js";
import { Problem } from "../parts/elements.js";

export class LateView {
  /** @param {() => Promise<any>} load returns the component */
  constructor(load) {
    this.loaded = signal(/** @type {any} */ (null));
    this.problem = signal(/** @type {ApiError | null} */ (null));
    this.loading = /** @type {Promise<void> | null} */ (null);
    /** Begin to load; the promise never fails. */
    this.load = () => {
      this.loading ??= load().then(
        (component) => void (this.loaded.value = component),
        () =>
          void (this.problem.value = new ApiError(
            0,
            "The server does not answer, or has another version of this page.",
          )),
      );
      return this.loading;
    };
    /** Shows the view as soon as it is loaded. @param {any} props */
    this.Component = (props) => {
      useEffect(() => void this.load(), []);
      if (this.loaded.value) return h(this.loaded.value, props);
      if (this.problem.value) return h(Problem, { error: this.problem.value, again: () => location.reload() });
      return h("div", { class: "empty", role: "status" }, "Loading …");
    };
  }
}
