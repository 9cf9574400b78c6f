/** What a validator says, and the words for a person who fills in a form. `$1` is the number or the text of the schema. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/^must have required property .*$/s, "is needed"],
  [/^must NOT have (?:additional|unevaluated) (?:properties|items)$/, "is not expected here"],
  [/^must be string$/, "must be a text"],
  [/^must be integer$/, "must be a whole number"],
  [/^must be number$/, "must be a number"],
  [/^must be boolean$/, "must be true or false"],
  [/^must be array$/, "must be a list"],
  [/^must be object$/, "must be an object"],
  [/^must be null$/, "must be empty (null)"],
  [/^must be equal to one of the allowed values$/, "must be one of the allowed values"],
  [/^must be equal to constant$/, "must be the one allowed value"],
  [/^must NOT have fewer than 1 characters?$/, "must not be empty"],
  [/^must NOT have fewer than (\d+) characters?$/, "must have at least $1 characters"],
  [/^must NOT have more than 1 characters?$/, "must have at most 1 character"],
  [/^must NOT have more than (\d+) characters?$/, "must have at most $1 characters"],
  [/^must NOT have fewer than 1 (?:items|properties)$/, "must not be empty"],
  [/^must NOT have fewer than (\d+) items?$/, "must have at least $1 items"],
  [/^must NOT have more than 1 items?$/, "must have at most 1 item"],
  [/^must NOT have more than (\d+) items?$/, "must have at most $1 items"],
  [/^must NOT have fewer than (\d+) properties$/, "must have at least $1 properties"],
  [/^must NOT have more than 1 properties$/, "must have at most 1 property"],
  [/^must NOT have more than (\d+) properties$/, "must have at most $1 properties"],
  [/^must NOT have duplicate items\b/, "must not have the same item twice"],
  [/^must be >= (\S+)$/, "must be at least $1"],
  [/^must be <= (\S+)$/, "must be at most $1"],
  [/^must be > (\S+)$/, "must be greater than $1"],
  [/^must be < (\S+)$/, "must be less than $1"],
  [/^must be multiple of (\S+)$/, "must be a multiple of $1"],
  [/^must match pattern "(.*)"$/s, "must match the pattern $1"],
  [/^must match format "(.*)"$/, "must have the format $1"],
];

/**
 * A validator's message as a sentence for a person who fills in a form. `place` is where in the field's value, empty for the whole value.
 * `title` is that of the field, if the message belongs to a field. Messages in other words stay as they are.
 */
export function plainFault(message: string, place: string, title: string | undefined): string {
  const [found, words] = WORDS.find(([pattern]) => pattern.test(message)) ?? [];
  const said = found && words ? message.replace(found, words) : undefined;
  if (place !== "") return said?.startsWith("is ") ? `${place} ${said}` : `${place}: ${said ?? message}`;
  if (said === undefined) return message;
  return title === undefined ? `This ${said}` : `${title} ${said}`;
}
