import type { ports } from "@portico/core";
import type * as v from "valibot";
import { RECEIPT_STEP_CHARACTERS, RECEIPT_STEPS_CHARACTERS } from "../limits.ts";
import type { receiptStep } from "../receipt-steps-contract.ts";
import { maskCredentials } from "../recording/mask-credentials.ts";
import { boundedText } from "./bounds.ts";

/** One message of a turn, as its receipt keeps it. */
export type ReceiptStep = v.InferOutput<typeof receiptStep>;

/** The messages of a turn, in their order: what its model answered and its tools returned. The texts are bounded, each and together. */
export function receiptSteps(messages: readonly ports.ConversationMessage[]): readonly ReceiptStep[] {
  let left = RECEIPT_STEPS_CHARACTERS;
  const textOf = (written: string): { readonly text?: string } => {
    if (left <= 0 || written === "") return {};
    // Masked before it is cut: a part of a credential is not found.
    const masked = maskCredentials(written.slice(0, MASKED_CHARACTERS));
    const most = Math.min(RECEIPT_STEP_CHARACTERS, left);
    const text = boundedText(masked, most, written.length > MASKED_CHARACTERS ? written.length : masked.length);
    left -= text.length;
    return { text };
  };
  return messages.flatMap((message): ReceiptStep[] => {
    if (message.role === "tool")
      return message.parts.flatMap((part) =>
        part.type === "tool_result"
          ? [
              {
                ...{ kind: "result", call_id: part.callId, ...textOf(resultText(part.result)) },
                ...(part.result.isError && { is_error: true }),
              } as const,
            ]
          : [],
      );
    const calls = message.parts.flatMap((part) => (part.type === "tool_call" ? [part.callId] : []));
    const words = message.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
    const kind = message.role === "user" ? "message" : "answer";
    return [{ kind, ...textOf(words), ...(calls.length > 0 && { calls }) }];
  });
}

/** More of a text is not shown, and masking takes time. */
const MASKED_CHARACTERS = RECEIPT_STEP_CHARACTERS * 2;

function resultText({ content }: ports.ToolResult): string {
  return content.map((part) => (part.type === "text" ? part.text : `[${part.mimeType}]`)).join("\n");
}
