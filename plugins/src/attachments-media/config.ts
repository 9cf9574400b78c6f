import * as v from "valibot";

const keepMs = () => v.optional(v.pipe(v.number(), v.minValue(0)));

/** Options of attachments and media. Limits are the specification's. */
export const attachmentsMediaConfig = v.strictObject({
  /**
   * The path at which nginx serves the folder of the blobs to itself, such as `/media-files`. If it is set, signed reads of media are answered
   * with `X-Accel-Redirect` and without bytes, and nginx sends the bytes. All readers must then come through this nginx. Needs blobs
   * that are files; with others, the service sends the bytes and logs a warning. Default: the service sends the bytes.
   */
  accelPrefix: v.optional(v.pipe(v.string(), v.regex(/^(?:\/[\w-][\w.-]*)+$/, "a path such as /media-files"))),
  /**
   * How long attachments are kept after their upload, or after the last query that refers to them was accepted, in milliseconds. Absent:
   * forever.
   */
  keepAttachmentsMs: keepMs(),
  /** The same for media. Media without a record of an owner are always kept. */
  keepMediaMs: keepMs(),
});

export type AttachmentsMediaSettings = v.InferOutput<typeof attachmentsMediaConfig>;
