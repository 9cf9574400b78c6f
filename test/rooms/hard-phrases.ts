/**
 * Phrases that readers stumble over (CONTRIBUTING.md, "Plain words"), each with a better way to write it. Add a phrase here when you
 * see one twice.
 */
export const hardPhrases: readonly { readonly phrase: RegExp; readonly better: string }[] = [
  { phrase: /\bwhoever\b/i, better: "name the actor: callers, authors, the process that …" },
  { phrase: /\b(?:some|any)body\b/i, better: "name the actor: a user, every caller, another program …" },
  { phrase: /\bas (?:it|they) stands?\b/i, better: "unchanged, literal" },
  { phrase: /\bnobody\b/i, better: "no caller, no user, no process …" },
  { phrase: /\b(?:is|are|was|were|be) none\b/i, better: "say what it is: an invalid name, no tokens exist" },
  { phrase: /\bas ever\b/i, better: "unchanged" },
  { phrase: /\bwhat is there\b/i, better: "name the noun: the files, the stored records" },
  { phrase: /\bso many\b/i, better: "the number, or: at most" },
  { phrase: /\b(?:is|are|was|were) over\b(?! \d)/i, better: "has ended, has expired" },
  { phrase: /\bstands? still\b/i, better: "is stopped, does not advance" },
  { phrase: /\bsays nothing of\b/i, better: "does not describe" },
  { phrase: /\b(?:is|are) no (?:JSON|UTF-8|YAML|JSON Schema|user|secrets?|part of)\b/i, better: "is not JSON, is not a user" },
];

/** The prose of a Markdown page, line by line: blocks of code and code within lines are blank. */
export function proseLines(text: string): string[] {
  let fence = false;
  const lines = text.split("\n").map((line) => {
    const isFence = line.trimStart().startsWith("```");
    if (isFence) fence = !fence;
    return isFence || fence ? "" : line;
  });
  return lines.map((line) => line.replaceAll(/`[^`]*`/g, "``"));
}

/** The comments of a source file, line by line: code, and code within comments, are blank. */
export function commentLines(text: string): string[] {
  const comments = text.split("\n").map((line) => /^\s*\/?\*.*|(?:^|\s)\/\/ .*/.exec(line)?.[0] ?? "");
  return comments.map((line) => line.replaceAll(/`[^`]*`/g, "``"));
}
