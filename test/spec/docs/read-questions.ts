import { readText } from "../../rooms/repository.ts";

/** A row of `docs/questions.md`. */
export interface Question {
  readonly question: string;
  /** The file of the answer, from the root. */
  readonly file: string;
  readonly heading: string;
  /** What the answer says. */
  readonly words: string;
}

export async function readQuestions(): Promise<Question[]> {
  const text = await readText("docs/questions.md");
  return [...text.matchAll(/^\| (.+\?) \| \[[^\]]+\]\(([^)#]+)#([^)]+)\) \| (.+) \|$/gm)].map(
    ([, question = "", link = "", heading = "", words = ""]) => ({
      question,
      file: link.startsWith("../") ? link.slice(3) : `docs/${link}`,
      heading,
      words,
    }),
  );
}
