import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "../browser/chromium.ts";

/** A picture of which a larger part differs is to be looked at. Times and identifiers differ in each picture. */
const MOST_DIFFERENT = 0.01;
/** A colour differs from this distance on, of 0 to 255 in each channel: pictures are compressed. */
const CHANNEL = 24;

/** The pictures of both folders of which more than a hundredth differs, with that part, the most different first, and those that are new. */
export async function compareGalleries(browser: Browser, earlier: string, later: string): Promise<readonly string[]> {
  const page = await browser.newPage();
  const urlOf = (folder: string, name: string) => `data:image/webp;base64,${readFileSync(join(folder, name)).toString("base64")}`;
  const found: { readonly name: string; readonly part: number }[] = [];
  try {
    for (const name of readdirSync(later).filter((file) => file.endsWith(".webp"))) {
      const part = existsSync(join(earlier, name))
        ? await page.evaluate(differentPart, { one: urlOf(earlier, name), other: urlOf(later, name), least: CHANNEL })
        : 1;
      if (part > MOST_DIFFERENT) found.push({ name, part });
    }
  } finally {
    await page.close();
  }
  return found.toSorted((a, b) => b.part - a.part).map(({ name, part }) => `${(part * 100).toFixed(1)} % ${name}`);
}

/** Runs in the page. Pictures of other sizes are different. */
async function differentPart(given: { readonly one: string; readonly other: string; readonly least: number }): Promise<number> {
  const pixelsOf = async (url: string) => {
    const bitmap = await createImageBitmap(await (await fetch(url)).blob());
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d")!;
    context.drawImage(bitmap, 0, 0);
    return context.getImageData(0, 0, bitmap.width, bitmap.height);
  };
  const [one, other] = await Promise.all([pixelsOf(given.one), pixelsOf(given.other)]);
  if (one.width !== other.width || one.height !== other.height) return 1;
  let different = 0;
  for (let at = 0; at < one.data.length; at += 4)
    if ([0, 1, 2].some((channel) => Math.abs(one.data[at + channel]! - other.data[at + channel]!) >= given.least)) different++;
  return different / (one.data.length / 4);
}
