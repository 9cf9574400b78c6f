import { ports } from "@portico/core";
import * as v from "valibot";

/** Prompts of a server, and arguments of a prompt. Further ones are left out. */
const MOST_PROMPTS = 1_000;
const MOST_ARGUMENTS = 32;
/** Characters of a title or a description. */
const LONGEST_WORDS = 1_000;
/** Characters of a message. A longer one is refused, because a cut one could say something else. */
const LONGEST_MESSAGE = 64 * 1024;

const name = v.pipe(v.string(), v.regex(/^\S{1,256}$/));
const words = v.fallback(
  v.optional(
    v.pipe(
      v.string(),
      v.transform((text) => text.slice(0, LONGEST_WORDS).toWellFormed().trim() || undefined),
    ),
  ),
  undefined,
);
const listedPrompt = v.object({
  name,
  title: words,
  description: words,
  arguments: v.nullish(
    v.pipe(v.array(v.object({ name, description: words, required: v.nullish(v.boolean(), false) })), v.maxLength(MOST_ARGUMENTS)),
    [],
  ),
});

/** A prompt of a server. */
export interface McpPrompt {
  /** The server's name of the prompt. */
  readonly name: string;
  readonly definition: ports.PromptDefinition;
}

/** The prompts of a server, by their IDs. */
export type PromptTable = ReadonlyMap<string, McpPrompt>;

/** Convert a server's list. Left out are prompts that cannot be read, and the second prompt with the same name. */
export function createPromptTable(serverId: string, listed: readonly unknown[]): PromptTable {
  const table = new Map<string, McpPrompt>();
  for (const each of listed) {
    const parsed = v.safeParse(listedPrompt, each);
    if (!parsed.success || table.size === MOST_PROMPTS) continue;
    const { title, description, ...prompt } = parsed.output;
    const id = `${serverId}/${prompt.name}`;
    const definition = {
      id,
      ...(title !== undefined && { title }),
      ...(description !== undefined && { description }),
      arguments: prompt.arguments.map((argument) => ({
        name: argument.name,
        ...(argument.description !== undefined && { description: argument.description }),
        isRequired: argument.required,
      })),
    };
    if (!table.has(id)) table.set(id, { name: prompt.name, definition });
  }
  return table;
}

/** Throws ToolArgumentsInvalid for arguments that the prompt does not have, and for required ones that are missing. */
export function checkArguments({ arguments: known }: ports.PromptDefinition, given: Readonly<Record<string, string>>): void {
  if (Object.keys(given).some((key) => known.every((argument) => argument.name !== key)))
    throw new ports.ToolArgumentsInvalid("An argument is not one of the prompt");
  const missing = known
    .filter((argument) => argument.isRequired && !Object.hasOwn(given, argument.name))
    .map((argument) => argument.name);
  if (missing.length > 0) throw new ports.ToolArgumentsInvalid(`Arguments are missing: ${missing.join(", ")}`);
}

/** Checks as little of an answer as possible, so that new kinds of content are allowed. */
export const promptAnswerSchema = v.looseObject({
  messages: v.array(v.looseObject({ role: v.string(), content: v.looseObject({ type: v.string() }) })),
});

const contentText = v.union([
  v.pipe(
    v.object({ type: v.literal("text"), text: v.string() }),
    v.transform(({ text }) => text),
  ),
  v.pipe(
    v.object({ type: v.literal("resource"), resource: v.object({ uri: v.string(), text: v.string() }) }),
    v.transform(({ resource }) => `Resource ${resource.uri}\n\n${resource.text}`),
  ),
]);

/** The texts of a person's messages, as one. Throws PromptRefused for a message that is too long or empty. */
export function toFilledPrompt({ messages }: v.InferOutput<typeof promptAnswerSchema>): ports.FilledPrompt {
  const texts = messages.flatMap(({ role, content }) => {
    const parsed = role === "user" ? v.safeParse(contentText, content) : undefined;
    return parsed?.success ? [parsed.output] : [];
  });
  const text = texts.join("\n\n").toWellFormed();
  if (text.length > LONGEST_MESSAGE) throw new ports.PromptRefused(`The prompt has more than ${LONGEST_MESSAGE} characters`);
  if (text.trim() === "") throw new ports.PromptRefused("The prompt has no text");
  return { text, leftOut: messages.length - texts.length };
}
