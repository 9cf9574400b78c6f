import { fromEnv, keeping } from "@portico/core";
import * as v from "valibot";

/** Options of attachments and media that presets have as settings of agents. */
export const attachmentsMediaSettings = {
  keepAttachments: v.optional(
    fromEnv(
      "PORTICO_AGENT_KEEP_ATTACHMENTS",
      keeping(),
      "How long attachments are kept after their upload, or after the last query with them.",
    ),
    "forever",
  ),
  // Media without a record of an owner are always kept.
  keepMedia: v.optional(
    fromEnv(
      "PORTICO_AGENT_KEEP_MEDIA",
      keeping(),
      "How long media are kept after their upload, or after the last query with them.",
    ),
    "forever",
  ),
  media: v.optional(
    v.strictObject({
      accelPrefix: v.optional(
        fromEnv(
          "PORTICO_MEDIA_ACCEL_PREFIX",
          v.pipe(v.string(), v.regex(/^(?:\/[\w-][\w.-]*)+$/, "a path such as /media-files")),
          "Path at which nginx serves the folder of the files to itself. If it is set, nginx sends the bytes of media, and all their readers must come through nginx. Needs files on a disk; with S3, the service sends the bytes.",
        ),
      ),
    }),
    {},
  ),
};

/** Options of attachments and media. Limits are the specification's. */
export const attachmentsMediaConfig = v.strictObject(attachmentsMediaSettings);

/** The same after parsing. */
export type AttachmentsMediaSettings = v.InferOutput<typeof attachmentsMediaConfig>;
