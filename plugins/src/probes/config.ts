import * as v from "valibot";

type IsReady = () => boolean | string;

/** Options of probes. */
export const probesConfig = v.strictObject({
  /** The surface that answers. */
  surface: v.string(),
  /** Whether the app is ready for requests; a text is the reason why it is not. Default: always ready. A stopping host is not ready while it drains. The checks of the port `readiness` are asked afterwards. */
  isReady: v.optional(v.custom<IsReady>((value) => typeof value === "function", "a function")),
});

/** Options of probes, as they are given. */
export type ProbesOptions = v.InferInput<typeof probesConfig>;
