import { parseXml, XmlElement } from "@rgrove/parse-xml";

/** The root of what a store said; undefined where that is no XML. */
export function readXml(text: string): XmlElement | undefined {
  try {
    // Stores send blanks to keep a line open while they work, some of them before all else.
    return parseXml(text.trimStart()).root ?? undefined;
  } catch {
    return undefined;
  }
}

export function childrenOf(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((child) => child instanceof XmlElement).filter((child) => child.name === name);
}

/** Text of the first child of that name; empty where there is none. */
export function textOf(element: XmlElement, name: string): string {
  return childrenOf(element, name)[0]?.text ?? "";
}

/** The root, which has that name. Throws Error where an answer is something else. */
export function expectRoot(root: XmlElement | undefined, name: string): XmlElement {
  if (root?.name !== name) throw new Error(`The store's answer is no ${name}`);
  return root;
}
