import { ports } from "@portico/core";
import * as v from "valibot";

const input = v.strictObject({
  attachment: v.pipe(
    v.string(),
    v.nonEmpty(),
    v.description("The `fileReference` of an attachment that the user of the run's grant has uploaded."),
  ),
});

/** Copies an attachment of the user whom the run's grant names into a file of the run (specification 4.5). */
export const attachmentNode: ports.WorkflowNode<v.InferOutput<typeof input>> = {
  type: "attachment",
  input,
  repeatable: true,
  async run({ input: { attachment }, files }) {
    if (files) return { file: await files.copyAttachment(attachment) };
    const message = "This node has no files: the service has no storage for them, or the node's output is sensitive";
    throw new ports.NodeFailed("files_unavailable", message, { retryable: false });
  },
};
