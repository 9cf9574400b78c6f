import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "./repository.ts";

const TOKENS = "console/src/styles/tokens.css";
const read = (file: string) => readFileSync(join(root, file), "utf8");

/** The colours of the tokens in the light and in the dark theme, as six hexadecimal digits. */
const colours = new Map(
  [...read(TOKENS).matchAll(/--([\w-]+): light-dark\(#(\w{6}), #(\w{6})\);/g)].map(
    ([, name, light, dark]) => [name!, { light: light!, dark: dark! }] as const,
  ),
);

/** Texts by what they are written on. */
const TEXTS: Readonly<Record<string, readonly string[]>> = {
  page: ["text", "text-soft", "accent", "good", "warn", "bad"],
  panel: ["text", "text-soft", "accent", "good", "warn", "bad"],
  inset: ["text", "text-soft"],
  raised: ["text"],
  hover: ["text", "text-soft"],
  "accent-soft": ["text", "accent"],
  "good-soft": ["good"],
  "warn-soft": ["warn"],
  "bad-soft": ["bad"],
  "accent-fill": ["on-accent"],
  "accent-fill-hover": ["on-accent"],
  "bad-fill": ["on-bad"],
  "bad-fill-hover": ["on-bad"],
};

/** WCAG 2.2: contrast of text (1.4.3), and of the focus ring with what is around it (1.4.11). */
const TEXT_RATIO = 4.5;
const RING_RATIO = 3;

function luminance(colour: string): number {
  const [red, green, blue] = [0, 2, 4].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

function contrast(one: string, other: string): number {
  const [darker, lighter] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return (lighter! + 0.05) / (darker! + 0.05);
}

const lowPairs = (on: string, names: readonly string[], least: number) =>
  names.flatMap((name) =>
    (["light", "dark"] as const).flatMap((theme) => {
      const ratio = contrast(colours.get(name)![theme], colours.get(on)![theme]);
      return ratio < least ? [`${name} on ${on}, ${theme}: ${ratio.toFixed(2)}`] : [];
    }),
  );

/** The styles of the console: of each component, and of each sheet. */
const styles = globSync("console/src/**/*.{svelte,css}", { cwd: root }).map((file) => {
  const text = read(file);
  const style = file.endsWith(".css") ? text : (/<style>(.*)<\/style>/s.exec(text)?.[1] ?? "");
  return { file, style: style.replaceAll(/\/\*.*?\*\//gs, "") };
});

describe("the theme of the web console", () => {
  it("the formula of contrast is the one of WCAG", () => {
    expect(contrast("000000", "ffffff")).toBeCloseTo(21);
    expect(contrast("777777", "ffffff")).toBeCloseTo(4.48, 2);
  });

  it.each(Object.entries(TEXTS))("texts on %s can be read in both themes", (on, names) => {
    expect(lowPairs(on, names, TEXT_RATIO)).toEqual([]);
  });

  it("lines of charts are seen on their panel", () => {
    const series = [...colours.keys()].filter((name) => name.startsWith("series-"));
    expect(series).toHaveLength(9);
    expect(lowPairs("panel", series, RING_RATIO)).toEqual([]);
  });

  it("the focus ring is seen on everything that it surrounds", () => {
    const around = ["page", "panel", "inset", "raised", "hover"];
    for (const on of around) expect(lowPairs(on, ["accent"], RING_RATIO)).toEqual([]);
    expect(read(TOKENS)).toContain("--ring: 2px solid var(--accent);");
    expect(read("console/src/styles/base.css")).toMatch(/:focus-visible \{\s*outline: var\(--ring\);/);
  });

  it("colours are written in the tokens alone", () => {
    const written = styles.flatMap(({ file, style }) =>
      file === TOKENS
        ? []
        : [...style.matchAll(/#[\da-f]{3,8}\b|\b(?:rgba?|hsla?|oklch|oklab)\(|:\s*(?:white|black)\b/gi)].map(
            ([colour]) => `${file}: ${colour}`,
          ),
    );
    expect(written).toEqual([]);
  });

  it("focus rings are written in the tokens alone", () => {
    const written = styles.flatMap(({ file, style }) =>
      [...style.matchAll(/\boutline(?:-\w+)?:\s*([^;}]+)/g)]
        .filter(([, value]) => file !== TOKENS && !/^(?:none|var\(--ring(?:-[a-z-]+)?\))\s*$/.test(value!))
        .map(([found]) => `${file}: ${found}`),
    );
    expect(written).toEqual([]);
  });

  it("distances are written in the tokens alone", () => {
    const written = styles.flatMap(({ file, style }) =>
      [...style.matchAll(/(?<![\w-])(?:margin|padding|gap|row-gap|column-gap)[a-z-]*:\s*([^;}]+)/g)]
        .filter(([, value]) => file !== TOKENS && /\d(?:px|rem|em|ch)\b/.test(value!))
        .map(([found]) => `${file}: ${found}`),
    );
    expect(written).toEqual([]);
  });

  it("the focus ring is hidden only where another element shows the focus", () => {
    const hidden = styles.filter(({ style }) => /outline:\s*(?:none|0)\b/.test(style)).map(({ file }) => file);
    expect(hidden.toSorted()).toEqual([
      // The form around the text shows it.
      "console/src/pages/agents/composer/Composer.svelte",
      "console/src/pages/agents/messages/EditMessage.svelte",
      // What gets the focus from the page, not from the user.
      "console/src/styles/base.css",
    ]);
  });

  it("every colour of the tokens is used", () => {
    const all = styles.map(({ style }) => style).join("\n") + globSync("console/src/**/*.ts", { cwd: root }).map(read).join("\n");
    expect([...colours.keys()].filter((name) => !all.includes(`var(--${name})`))).toEqual([]);
  });
});
