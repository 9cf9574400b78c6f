import type { ports } from "@portico/core";
import { writeCompletionChunks } from "./echo-chat.ts";
import { writeMessageEvents } from "./echo-messages.ts";
import type { EchoTurn } from "./echo-turn.ts";

export interface ScriptedAnswer {
  readonly text?: string;
  readonly thinking?: string;
  readonly calls?: EchoTurn["calls"];
  /** The protocol's own word for why the answer ended; default: that the model is done, or calls tools. */
  readonly stop?: string;
}

/** The events of one streamed answer in a protocol, whole: the last ones are its end. */
export function answerEvents(protocol: ports.ModelProtocol, answer: ScriptedAnswer): string[] {
  const { text = "", thinking, calls = [], stop } = answer;
  const turn: EchoTurn = {
    ...{ model: "echo-large", text, calls, inputTokens: 7, outputTokens: 11 },
    finish: calls.length > 0 ? "tool" : "end",
    ...(thinking !== undefined && { thinking }),
  };
  if (protocol === "messages") {
    const ended = (event: string) => event.replace(/"stop_reason":"\w+"/, `"stop_reason":"${stop}"`);
    return writeMessageEvents(turn, "msg_scripted").map((event) => (stop === undefined ? event : ended(event)));
  }
  const ended = (event: string) => event.replace(/"finish_reason":"\w+"/, `"finish_reason":"${stop}"`);
  return writeCompletionChunks(turn, "chatcmpl-scripted", true).map((event) => (stop === undefined ? event : ended(event)));
}

/** The same without its protocol's end: the connection closes in order after the last word or call. */
export function withoutEnd(protocol: ports.ModelProtocol, answer: ScriptedAnswer): string[] {
  const isEnd = protocol === "messages" ? /"type":"message_(?:delta|stop)"/ : /"finish_reason":"|\[DONE\]|"choices":\[\]/;
  return answerEvents(protocol, answer).filter((event) => !isEnd.test(event));
}
