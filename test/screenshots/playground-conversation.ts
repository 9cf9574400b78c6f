import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Browser } from "../browser/chromium.ts";
import { DESKTOP, openConsole } from "../browser/console.ts";
import { root } from "../rooms/repository.ts";
import type { Gallery } from "./gallery.ts";

const prices = { currency: "EUR", models: [{ model: "demo", from: "2020-01-01", input: 2, output: 10 }] };

/** Pictures of the playground: an image, a call of a tool, and the answer to its result. */
export async function takePlayground(browser: Browser, gallery: Gallery): Promise<void> {
  await using opened = await openConsole({ browser, config: { prices } });
  const { page } = opened;
  const icon = {
    name: "paris.png",
    mimeType: "image/png",
    buffer: readFileSync(resolve(root, "docs/images/console-lists-phone.png")),
  };
  await opened.goTo("Playground");
  await page.getByLabel("System (optional)").fill("Answer in one sentence. Look up the weather with a tool.");
  await page.getByRole("button", { name: "Insert an example" }).click();
  await page.getByRole("textbox", { name: "Tools" }).waitFor();
  await page.locator("input[type=file]").setInputFiles(icon);
  await page.getByLabel("Text of message 1").fill("What do I wear in Paris? Use get_weather.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByLabel("Result of get_weather").fill("Sunny, 24 degrees");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByLabel("Text of message 4").waitFor();
  await page.getByRole("tab", { name: "TypeScript" }).click();
  await page.setViewportSize({ ...DESKTOP, height: 1180 });
  await page.evaluate(() => scrollTo(0, 0));
  await gallery.take(page, { name: "playground", about: "a conversation in the playground", page: "playground" });
}
