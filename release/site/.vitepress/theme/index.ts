import mermaidScript from "@mermaid-js/tiny/dist/mermaid.tiny.js?url";
import { type Theme, useData } from "vitepress";
import DefaultTheme from "vitepress/theme";
import { defineComponent, h, onMounted, ref, watch } from "vue";
import "./pictures.css";

interface Mermaid {
  initialize(options: { startOnLoad: false; securityLevel: "strict"; theme: "dark" | "default" }): void;
  render(id: string, source: string, stage: Element): Promise<{ readonly svg: string }>;
}

let mermaid: Promise<Mermaid> | undefined;
let drawn = 0;

/** The library is a classic script, and only pages with a picture load it. */
function loadMermaid(): Promise<Mermaid> {
  return (mermaid ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = mermaidScript;
    script.addEventListener("load", () => resolve((globalThis as unknown as { readonly mermaid: Mermaid }).mermaid));
    script.addEventListener("error", () => reject(new Error("The script that draws pictures could not be loaded")));
    document.head.append(script);
  }));
}

/** Draws the source of a picture in the browser. Until then, and without scripts, it shows the source. */
const MermaidPicture = defineComponent({
  props: { source: { type: String, required: true } },
  setup(props) {
    const { isDark } = useData();
    const svg = ref<string>();
    const stage = ref<HTMLElement>();
    const source = decodeURIComponent(props.source);
    const draw = async () => {
      const { initialize, render } = await loadMermaid();
      initialize({ startOnLoad: false, securityLevel: "strict", theme: isDark.value ? "dark" : "default" });
      ({ svg: svg.value } = await render(`picture-${drawn++}`, source, stage.value!));
    };
    onMounted(() => void draw());
    watch(isDark, draw);
    return () => [
      svg.value === undefined
        ? h("pre", { class: "mermaid-picture" }, source)
        : h("div", { class: "mermaid-picture", innerHTML: svg.value }),
      h("div", { class: "mermaid-stage", ref: stage }),
    ];
  },
});

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => void app.component("MermaidPicture", MermaidPicture),
} satisfies Theme;
