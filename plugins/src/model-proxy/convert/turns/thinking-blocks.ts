import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";
import { dropUnknown, readArray, readObject, readOptional, readString } from "../request/read-field.ts";

const THINKING_FIELDS = new Set(["type", "thinking", "signature"]);
const REDACTED_FIELDS = new Set(["type", "data"]);

/**
 * Thinking of earlier turns, for servers of Chat Completions that want it back within a tool loop: its text as
 * `reasoning_content`, and what was signed or redacted as `reasoning_details` in its order, so that a Messages provider
 * behind such a server can check it.
 */
export function thinkingToChat(blocks: readonly JsonObject[], paths: readonly string[], dropped: Dropped): JsonObject {
  let text = "";
  const details = blocks.flatMap((block, index): JsonObject[] => {
    const path = paths[index] ?? "messages";
    if (block.type === "redacted_thinking") {
      dropUnknown(block, REDACTED_FIELDS, "messages.content.", dropped);
      return [{ type: "reasoning.encrypted", data: readString(block.data, `${path}.data`) }];
    }
    dropUnknown(block, THINKING_FIELDS, "messages.content.", dropped);
    const thinking = readString(block.thinking, `${path}.thinking`);
    text += thinking;
    const signature = readOptional(block.signature, `${path}.signature`, readString);
    return signature ? [{ type: "reasoning.text", text: thinking, signature }] : [];
  });
  const fields: JsonObjectDraft = {};
  if (text !== "") fields.reasoning_content = text;
  if (details.length > 0) fields.reasoning_details = details;
  return fields;
}

/**
 * The thinking that this proxy handed to a caller of Chat Completions, as the blocks that the Messages provider signed. A stream
 * gives the text apart from its signature: then the one is joined to the other again, if there is one of each. Reasoning without
 * a signature never came from such a provider, which would refuse it: dropped. An empty signature counts, for providers that
 * speak Messages and sign nothing.
 */
export function thinkingToMessages(message: JsonObject, path: string, dropped: Dropped): readonly JsonObject[] {
  const content = readOptional(message.reasoning_content, `${path}.reasoning_content`, readString) ?? "";
  const details = (readOptional(message.reasoning_details, `${path}.reasoning_details`, readArray) ?? []).map((detail, index) =>
    readDetail(detail, `${path}.reasoning_details.${index}`),
  );
  const signed = details.filter((detail) => detail.signature !== undefined);
  const textless = signed.filter((detail) => detail.text === undefined);
  const blocks = details.flatMap(({ data, text, signature }): JsonObject[] => {
    if (data !== undefined) return [{ type: "redacted_thinking", data }];
    return signature === undefined ? [] : [{ type: "thinking", thinking: text ?? content, signature }];
  });
  if (blocks.length < details.length) dropped.add("messages.reasoning_details");
  if (content !== "" && signed.length === 0) dropped.add("messages.reasoning_content");
  // Which part of the text belongs to which signature can't be told, and thinking that was altered is refused: none is better.
  if (textless.length === 0 || signed.length === 1) return blocks;
  dropped.add("messages.reasoning_details");
  return [];
}

interface ReasoningDetail {
  readonly data?: string | undefined;
  readonly text?: string | undefined;
  readonly signature?: string | undefined;
}

function readDetail(value: Json, path: string): ReasoningDetail {
  const detail = readObject(value, path);
  if (detail.type === "reasoning.encrypted") return { data: readString(detail.data, `${path}.data`) };
  if (detail.type !== "reasoning.text") return {};
  return {
    text: readOptional(detail.text, `${path}.text`, readString),
    signature: readOptional(detail.signature, `${path}.signature`, readString),
  };
}
