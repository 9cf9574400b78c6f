import type { Access } from "@portico/core";
import * as v from "valibot";

/** Facts about a surface that its contracts do not contain. */
export const describedSurface = {
  /** The surface that is described. */
  surface: v.string(),
  /** Title of the documents; default: the surface's name. */
  title: v.optional(v.string()),
  /** Version of the service; default: `0.0.0`. */
  version: v.optional(v.string(), "0.0.0"),
  /** How clients use realtime channels, as text for readers. It depends on the realtime adapter. */
  transport: v.optional(v.string()),
};

/** Options of the pages of API documents. Each surface serves its own documents. */
export const apiDocsConfig = v.strictObject({
  ...describedSurface,
  /** Who may read them. */
  access: v.custom<Access>((value) => typeof (value as Access | undefined)?.guard === "function", "an access"),
});

/** Options of `apiDocs`. */
export type ApiDocsOptions = v.InferInput<typeof apiDocsConfig>;
/** The surface that is described, and the facts about it. */
export type DescribedSurface = Omit<ApiDocsOptions, "access">;
