import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Page } from "../browser/chromium.ts";
import { DESKTOP, PHONE } from "../browser/console.ts";
import { root } from "../rooms/repository.ts";
import { consolePages } from "./console-pages.ts";

/** A page of the console, or a state of one. */
export interface View {
  /** Of its pictures: lowercase letters, digits, `-`. */
  readonly name: string;
  /** What it shows, as the end of the sentence "The console shows …". */
  readonly about: string;
  /** First segment of its address, as in the navigation; undefined for a view outside of it. */
  readonly page: string | undefined;
  /** The further segments and the query. Undefined: what is shown is not changed. */
  readonly path?: string;
  /** Resolves when the view is complete. */
  readonly ready?: (page: Page) => Promise<unknown>;
  /** Undoes what `ready` has done. */
  readonly after?: (page: Page) => Promise<unknown>;
}

/** Closes the dialog that is open. */
export async function closeDialog(page: Page): Promise<void> {
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

const LOOKS = [
  { name: "desktop-light", viewport: DESKTOP, colorScheme: "light" },
  { name: "desktop-dark", viewport: DESKTOP, colorScheme: "dark" },
  { name: "phone-light", viewport: PHONE, colorScheme: "light" },
  { name: "phone-dark", viewport: PHONE, colorScheme: "dark" },
] as const;
/** Of a release, and not of the repository. */
export const FOLDER = "dist/console-gallery";
const QUALITY = 0.8;
/** Charts and graphs are drawn again after a change of the window. */
const SETTLED_MS = 400;
const READY_MS = 15_000;

const pictureOf = (view: string, look: string): string => `${view}-${look}.webp`;

/** Takes pictures of views in every look, and writes the page that shows them. */
export class Gallery {
  readonly #taken: View[] = [];
  readonly #problems: string[] = [];

  constructor() {
    rmSync(resolve(root, FOLDER), { recursive: true, force: true });
    mkdirSync(resolve(root, FOLDER), { recursive: true });
  }

  /** Takes the pictures of a view. One that cannot be shown is a problem, and the others are still taken. */
  async take(page: Page, view: View): Promise<void> {
    try {
      if (view.path !== undefined) {
        await page.evaluate((to) => (location.hash = to), `#/${view.page ?? ""}${view.path}`);
        await page.getByRole("heading", { level: 1 }).first().waitFor({ timeout: READY_MS });
      }
      await view.ready?.(page);
      for (const { name, viewport, colorScheme } of LOOKS) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize(viewport);
        await page.mouse.move(viewport.width - 1, viewport.height - 1);
        const loading = page.getByRole("status").filter({ hasText: /^\s*Loading / });
        await loading.first().waitFor({ state: "detached", timeout: READY_MS });
        await page.waitForTimeout(SETTLED_MS);
        writeFileSync(
          resolve(root, FOLDER, pictureOf(view.name, name)),
          await toWebp(page, await page.screenshot({ animations: "disabled" })),
        );
      }
      this.#taken.push(view);
      await view.after?.(page);
    } catch (error) {
      this.#problems.push(`${view.name}: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      await page.emulateMedia({ colorScheme: "light" });
      await page.setViewportSize(DESKTOP);
    }
  }

  /** Takes the pages of the navigation of which no view was taken, as they are opened. */
  async takeOthers(page: Page): Promise<void> {
    for (const { id, title } of await consolePages()) {
      if (this.#taken.some((view) => view.page === id)) continue;
      const shown = (opened: Page) =>
        opened.getByRole("heading", { level: 1, name: title, exact: true }).waitFor({ timeout: READY_MS });
      await this.take(page, { name: id || "overview", about: `the page ${title}`, page: id, path: "", ready: shown });
    }
  }

  /** Writes the page of the gallery. Throws if a view could not be taken. */
  async write(): Promise<void> {
    const pages = [...(await consolePages()), { id: undefined, title: "Outside of the navigation" }];
    const sections = pages.flatMap(({ id, title }) => {
      const views = this.#taken.filter((view) => view.page === id);
      return views.length === 0 ? [] : [`## ${title}`, ...views.map(sectionOf)];
    });
    writeFileSync(resolve(root, FOLDER, "README.md"), `${[HEAD, ...sections].join("\n\n")}\n`);
    if (this.#problems.length > 0) throw new Error(`Some views could not be taken:\n${this.#problems.join("\n")}`);
  }
}

const HEAD = `# The console in pictures

Each page of the web console, 1,280 and 390 pixels wide, in the light and in the dark theme.`;

function sectionOf({ name, about }: View): string {
  const picture = (look: string, width: string) => {
    const [window, theme] = look.split("-");
    const alt = `${about}, ${window === "phone" ? "on a phone" : "on a desktop"}, ${theme}`;
    return `<img src="${pictureOf(name, look)}" width="${width}" alt="${alt}">`;
  };
  const lines = LOOKS.map(({ name: look }) => picture(look, look.startsWith("phone") ? "200" : "400"));
  return `${about[0]!.toUpperCase()}${about.slice(1)}:\n\n${lines.join("\n")}`;
}

/** The browser encodes it, on a page without the console's content security policy. */
async function toWebp(page: Page, png: Buffer): Promise<Buffer> {
  const blank = await page.context().newPage();
  try {
    const encoded = await blank.evaluate(
      async ({ source, quality }) => {
        const bitmap = await createImageBitmap(await (await fetch(source)).blob());
        const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
        canvas.getContext("2d")!.drawImage(bitmap, 0, 0);
        const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/webp", quality })).arrayBuffer());
        return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
      },
      { source: `data:image/png;base64,${png.toString("base64")}`, quality: QUALITY },
    );
    return Buffer.from(encoded, "base64");
  } finally {
    await blank.close();
  }
}
