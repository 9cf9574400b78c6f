import type { Access } from "@portico/core";
import * as v from "valibot";

/** What the documents of a surface say that no contract knows. */
export const describedSurface = {
  /** The surface that is described. */
  surface: v.string(),
  /** Title of the documents; default: the surface's name. */
  title: v.optional(v.string()),
  /** Version of the service; default: `0.0.0`. */
  version: v.optional(v.string(), "0.0.0"),
  /** How a client speaks on realtime channels, for a reader; the realtime adapter decides it. */
  transport: v.optional(v.string()),
};

/** Options of the pages of API documents. The surface answers with its own documents. */
export const apiDocsConfig = v.strictObject({
  ...describedSurface,
  /** Who may read them. */
  access: v.custom<Access>((value) => typeof (value as Access | undefined)?.guard === "function", "an access"),
});

/** Options of `apiDocs`. */
export type ApiDocsOptions = v.InferInput<typeof apiDocsConfig>;
/** Which surface is described, and what its documents say of it. */
export type DescribedSurface = Omit<ApiDocsOptions, "access">;
