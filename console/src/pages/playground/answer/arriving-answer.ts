import type { AnswerPart, AnswerUsage } from "../conversation.ts";

/** An answer that arrives. */
export interface ArrivingAnswer {
  readonly parts: AnswerPart[];
  usage: AnswerUsage;
  stopReason: string | undefined;
}

/** Adds text to the last part, or begins a part of this type. */
export function addText(into: ArrivingAnswer, type: "text" | "thinking", text: string | null | undefined): void {
  if (!text) return;
  const last = into.parts.at(-1);
  if (last?.type === type && !("data" in last)) last.text += text;
  else into.parts.push({ type, text });
}
