import { describe, it } from "vitest";
import { readPage } from "./pages.ts";
import { readers } from "./readers.ts";
import { runPage } from "./run-page.ts";

describe.concurrent("the commands of a page do what it says", () => {
  it.each(Object.entries(readers))(
    "%s",
    async (file, reader) => runPage(await readPage(file), reader, AbortSignal.timeout(280_000)),
    300_000,
  );
});
