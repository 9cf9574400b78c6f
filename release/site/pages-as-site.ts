import { dirname, join, relative } from "node:path";
import type { MarkdownRenderer } from "vitepress";
import { sitePath } from "./contents.ts";

/**
 * The address of the repository on its forge, for the links to its files. `PORTICO_REPOSITORY` names it; in a job of GitHub, it is the job's
 * own. Without one, undefined.
 */
export function repositoryUrl({
  PORTICO_REPOSITORY,
  GITHUB_SERVER_URL,
  GITHUB_REPOSITORY,
}: NodeJS.ProcessEnv): string | undefined {
  if (PORTICO_REPOSITORY) return PORTICO_REPOSITORY.replace(/\/+$/, "");
  return GITHUB_SERVER_URL && GITHUB_REPOSITORY ? `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}` : undefined;
}

interface LinksOptions {
  /** The folder of the repository. */
  readonly root: string;
  /** The files of the site. */
  readonly pages: readonly string[];
  readonly repository: string | undefined;
}

/** Makes links of files lead to pages of the site. Links to other files lead to the forge; where it is unknown, their text stays. */
export function linksOfSite(markdown: MarkdownRenderer, { root, pages, repository }: LinksOptions): void {
  const isPage = new Set(pages);
  markdown.core.ruler.push("links-of-site", ({ tokens, env }) => {
    const { realPath, path } = env as { readonly realPath?: string; readonly path: string };
    const folder = dirname(realPath ?? path);
    for (const { children } of tokens) {
      let isDropped = false;
      for (const token of children ?? []) {
        if (token.type === "link_close" && isDropped) {
          isDropped = false;
          token.type = "text";
          token.tag = "";
        }
        if (token.type !== "link_open") continue;
        const [target = "", heading] = (token.attrGet("href") ?? "").split("#");
        if (target === "" || /^\w+:/.test(target)) continue;
        const file = relative(root, join(folder, decodeURI(target)));
        const anchor = heading === undefined ? "" : `#${heading}`;
        if (isPage.has(file)) token.attrSet("href", `/${sitePath(file)}${anchor}`);
        else if (repository !== undefined) token.attrSet("href", `${repository}/blob/main/${file}${anchor}`);
        else {
          isDropped = true;
          token.type = "text";
          token.tag = "";
        }
      }
    }
  });
}

/** Gives a block of the language `mermaid` to the component that draws it. */
export function mermaidPictures(markdown: MarkdownRenderer): void {
  const fence = markdown.renderer.rules.fence!;
  markdown.renderer.rules.fence = (tokens, at, ...rest) => {
    const { info, content } = tokens[at]!;
    if (info.trim() !== "mermaid") return fence(tokens, at, ...rest);
    return `<MermaidPicture source="${encodeURIComponent(content)}" />\n`;
  };
}

/** Shows double braces as they are. Vue would evaluate what is between them. */
export function bracesAsText({ renderer: { rules } }: MarkdownRenderer): void {
  for (const kind of ["text", "code_inline"] as const) {
    const render = rules[kind]!;
    rules[kind] = (...given) => render(...given).replaceAll("{{", "&#123;&#123;");
  }
}
