declare module "*.vue" {
  import type { DefineComponent } from "vue";

  const component: DefineComponent<object, object, unknown>;
  export default component;
}

/** Where the script lies that draws diagrams; the build says it. */
declare const __DIAGRAM_SCRIPT__: string;
