import type { ports } from "@portico/core";
import { type ModelQuestion, ModelRefusal, type QuestionPart, type QuestionSource } from "@portico/core/model-protocols";
import type { SaidToTurn } from "../background/said-to-turns.ts";
import { ASKED_CHARACTERS, HISTORY_MESSAGES, SHOWN_MEDIA_BYTES } from "../limits.ts";

/** A request to a model, as an agent is asked it. */
export interface ReadQuestion extends SaidToTurn {
  /** The text of the last message. */
  readonly prompt: string;
  /** Fields of the request that have no meaning for an agent. */
  readonly dropped: readonly string[];
}

interface Said {
  readonly role: "user" | "assistant";
  readonly parts: readonly QuestionPart[];
}

/**
 * The last message of the user is what the agent is asked, and the messages before it are the history of the turn. Instructions of the request are
 * left out, because the agent has its own. Throws ModelRefusal.
 */
export function questionToTurn(question: ModelQuestion): ReadQuestion {
  const { turns } = question;
  const said = joined(turns);
  const last = said.at(-1);
  if (last?.role !== "user") throw refused("messages: the last message must be of the user");
  if (last.parts.length === 0) throw refused("messages: the last message is empty");
  const shown = shownMessages(said.slice(-HISTORY_MESSAGES - 1));
  const [history, input] = [shown.slice(0, -1), shown.at(-1)!.parts];
  if (JSON.stringify([history, input]).length > ASKED_CHARACTERS)
    throw new ModelRefusal("too-large", `The messages have more than ${ASKED_CHARACTERS} characters of JSON`);
  const hasSystem = question.system !== "" || turns.some(({ role }) => role === "system");
  const dropped = [
    ...(hasSystem ? ["system"] : []),
    ...(question.temperature === undefined ? [] : ["temperature"]),
    ...(question.topP === undefined ? [] : ["top_p"]),
    ...(question.topK === undefined ? [] : ["top_k"]),
    ...(question.stopSequences.length === 0 ? [] : ["stop_sequences"]),
  ];
  const prompt = last.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
  return { prompt, history, input, dropped };
}

function refused(message: string): ModelRefusal {
  return new ModelRefusal("invalid-request", message);
}

/** Neighbours of one role are one message. */
function joined(turns: ModelQuestion["turns"]): readonly Said[] {
  const said: Said[] = [];
  for (const { role, parts } of turns) {
    if (role === "system") continue;
    const last = said.at(-1);
    if (last?.role === role) said[said.length - 1] = { role, parts: [...last.parts, ...parts] };
    else said.push({ role, parts });
  }
  return said;
}

/** The newest media are shown, as many as fit. Notes say what else there was. */
function shownMessages(said: readonly Said[]): readonly ports.ConversationMessage[] {
  let left = SHOWN_MEDIA_BYTES;
  const fits = (data: string): boolean => {
    const bytes = (data.length / 4) * 3;
    if (bytes > left) return false;
    left -= bytes;
    return true;
  };
  const shown = said.toReversed().map(({ role, parts }) => ({
    role,
    parts: parts.flatMap((part): readonly ports.MessagePart[] => {
      if (part.type === "text") return [{ type: "text", text: part.text }];
      if (part.type === "image") return [shownFile("image", part.source, undefined, fits)];
      return part.type === "document" ? [shownFile("document", part.source, part.title, fits)] : [];
    }),
  }));
  return shown.toReversed();
}

function shownFile(
  kind: "image" | "document",
  source: QuestionSource,
  name: string | undefined,
  fits: (data: string) => boolean,
): ports.MessagePart {
  if (source.type === "text") return { type: "text", text: name === undefined ? source.text : `${name}\n\n${source.text}` };
  // The service calls no address that a caller names.
  if (source.type === "url")
    return { type: "text", text: `[The ${kind} at an address was left out: only its bytes can be shown]` };
  const { mediaType, data } = source;
  if (!fits(data)) return { type: "text", text: `[The ${kind}, ${mediaType}, is too large to be shown with the rest]` };
  return { type: "media", mediaType, data, ...(name !== undefined && { name }) };
}
