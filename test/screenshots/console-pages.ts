import { readText } from "../rooms/repository.ts";

/** A page of the navigation of the console. */
export interface ConsolePage {
  /** First segment of its address. */
  readonly id: string;
  readonly title: string;
}

/** The pages of the navigation, in its order. Read as text: the list imports components. */
export async function consolePages(): Promise<readonly ConsolePage[]> {
  const source = await readText("console/src/shell/pages.ts");
  return Array.from(source.matchAll(/\{ id: "([^"]*)", title: "([^"]+)"/g), ([, id, title]) => ({ id: id!, title: title! }));
}
