import * as v from "valibot";

type IsReady = () => boolean | string;

/** Options of probes. */
export const probesConfig = v.strictObject({
  /** The surface that answers. */
  surface: v.string(),
  /** Whether requests should come in now; a text says why not. Default: always. A host that stops says no first, and then drains. */
  isReady: v.optional(v.custom<IsReady>((value) => typeof value === "function", "a function")),
});

/** Options of probes, as they are given. */
export type ProbesOptions = v.InferInput<typeof probesConfig>;
