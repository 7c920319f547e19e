import type { PackageManifest } from "./manifests/manifest.ts";

/** What a framework is for; `build` and `library` call for no role of their own. */
export type Area = "frontend" | "backend" | "data" | "mobile" | "desktop" | "learning" | "build" | "library" | "test" | "lint";

export interface Framework {
  label: string;
  area: Area;
}

/** By kind of package and area: `dependency=Label`, with underscores for spaces; a star matches anything. */
const KNOWN: readonly [kind: string, area: Area, entries: string][] = [
  [
    "npm",
    "frontend",
    "react=React vue=Vue @angular/core=Angular svelte=Svelte solid-js=Solid preact=Preact next=Next.js nuxt=Nuxt @remix-run/react=Remix astro=Astro @sveltejs/kit=SvelteKit gatsby=Gatsby lit=Lit tailwindcss=Tailwind @tanstack/react-query=TanStack_Query redux=Redux pinia=Pinia",
  ],
  ["npm", "build", "vite=Vite webpack=webpack rollup=Rollup esbuild=esbuild parcel=Parcel"],
  [
    "npm",
    "backend",
    "express=Express fastify=Fastify @nestjs/core=NestJS koa=Koa hono=Hono @hapi/hapi=hapi @apollo/server=Apollo graphql-yoga=GraphQL_Yoga @trpc/server=tRPC socket.io=Socket.IO",
  ],
  [
    "npm",
    "data",
    "prisma=Prisma @prisma/client=Prisma drizzle-orm=Drizzle typeorm=TypeORM sequelize=Sequelize mongoose=Mongoose knex=Knex pg=PostgreSQL mysql2=MySQL better-sqlite3=SQLite redis=Redis ioredis=Redis",
  ],
  ["npm", "mobile", "react-native=React_Native expo=Expo @ionic/core=Ionic @capacitor/core=Capacitor"],
  ["npm", "desktop", "electron=Electron @tauri-apps/api=Tauri"],
  [
    "npm",
    "test",
    "jest=Jest vitest=Vitest mocha=Mocha qunit=QUnit ava=AVA jasmine=Jasmine karma=Karma @playwright/test=Playwright playwright=Playwright cypress=Cypress tap=tap @testing-library/*=Testing_Library",
  ],
  ["npm", "lint", "eslint=ESLint @biomejs/biome=Biome prettier=Prettier oxlint=oxlint stylelint=Stylelint"],
  ["python", "backend", "django=Django flask=Flask fastapi=FastAPI starlette=Starlette tornado=Tornado celery=Celery"],
  ["python", "library", "aiohttp=aiohttp"],
  [
    "python",
    "data",
    "sqlalchemy=SQLAlchemy alembic=Alembic psycopg*=PostgreSQL pymongo=MongoDB redis=Redis airflow=Airflow apache-airflow=Airflow dbt-core=dbt",
  ],
  [
    "python",
    "learning",
    "torch=PyTorch tensorflow=TensorFlow scikit-learn=scikit-learn pandas=pandas numpy=NumPy transformers=Transformers jupyter*=Jupyter",
  ],
  ["python", "frontend", "streamlit=Streamlit"],
  ["python", "desktop", "pyqt*=Qt pyside*=Qt"],
  ["python", "test", "pytest=pytest pytest-*=pytest nose=nose tox=tox nox=nox hypothesis=Hypothesis behave=behave"],
  ["python", "lint", "ruff=Ruff flake8=Flake8 pylint=Pylint mypy=mypy black=Black pyright=Pyright"],
  ["cargo", "backend", "axum=Axum actix-web=Actix rocket=Rocket warp=warp tonic=Tonic"],
  ["cargo", "library", "tokio=Tokio hyper=hyper"],
  ["cargo", "frontend", "leptos=Leptos yew=Yew dioxus=Dioxus"],
  ["cargo", "desktop", "tauri=Tauri egui=egui"],
  ["cargo", "data", "diesel=Diesel sqlx=SQLx sea-orm=SeaORM rusqlite=SQLite"],
  ["cargo", "test", "proptest=proptest rstest=rstest criterion=Criterion insta=insta"],
  [
    "go",
    "backend",
    "github.com/gin-gonic/gin=Gin github.com/labstack/echo=Echo github.com/gofiber/fiber=Fiber github.com/go-chi/chi=chi github.com/gorilla/mux=Gorilla google.golang.org/grpc=gRPC",
  ],
  [
    "go",
    "data",
    "gorm.io/gorm=GORM github.com/jackc/pgx=PostgreSQL github.com/jmoiron/sqlx=sqlx github.com/redis/go-redis=Redis",
  ],
  ["go", "test", "github.com/stretchr/testify=Testify github.com/onsi/ginkgo=Ginkgo"],
  ["ruby", "backend", "rails=Rails sinatra=Sinatra hanami=Hanami sidekiq=Sidekiq"],
  ["ruby", "data", "activerecord=Active_Record sequel=Sequel pg=PostgreSQL"],
  ["ruby", "test", "rspec=RSpec rspec-rails=RSpec minitest=Minitest capybara=Capybara"],
  ["ruby", "lint", "rubocop=RuboCop"],
  ["php", "backend", "laravel/framework=Laravel symfony/framework-bundle=Symfony symfony/http-kernel=Symfony slim/slim=Slim"],
  ["php", "data", "doctrine/orm=Doctrine"],
  ["php", "test", "phpunit/phpunit=PHPUnit pestphp/pest=Pest"],
  [
    "php",
    "lint",
    "phpstan/phpstan=PHPStan vimeo/psalm=Psalm friendsofphp/php-cs-fixer=PHP_CS_Fixer squizlabs/php_codesniffer=PHP_CodeSniffer",
  ],
  [
    "jvm",
    "backend",
    "spring-boot*=Spring_Boot org.springframework.boot*=Spring_Boot quarkus*=Quarkus io.quarkus*=Quarkus micronaut*=Micronaut io.micronaut*=Micronaut io.ktor*=Ktor ktor*=Ktor",
  ],
  [
    "jvm",
    "data",
    "hibernate*=Hibernate spring-boot-starter-data*=Spring_Data spring-boot-starter-jdbc=Spring_JDBC flyway*=Flyway org.flywaydb*=Flyway postgresql=PostgreSQL mysql-connector*=MySQL",
  ],
  ["jvm", "mobile", "com.android.application=Android com.android.library=Android androidx.*=Android"],
  [
    "jvm",
    "test",
    "junit*=JUnit spring-boot-starter-test=Spring_Boot_Test spring-boot-starter-*-test=Spring_Boot_Test org.junit*=JUnit mockito*=Mockito org.mockito*=Mockito testng=TestNG io.kotest*=Kotest org.spockframework*=Spock",
  ],
  [
    "jvm",
    "lint",
    "com.diffplug.spotless=Spotless spotless-maven-plugin=Spotless checkstyle=Checkstyle maven-checkstyle-plugin=Checkstyle pmd=PMD maven-pmd-plugin=PMD com.github.spotbugs=SpotBugs spotbugs-maven-plugin=SpotBugs io.gitlab.arturbosch.detekt=detekt",
  ],
  ["dotnet", "backend", "Microsoft.NET.Sdk.Web=ASP.NET_Core Microsoft.AspNetCore*=ASP.NET_Core Grpc.AspNetCore=gRPC"],
  ["dotnet", "frontend", "Microsoft.NET.Sdk.BlazorWebAssembly=Blazor"],
  ["dotnet", "data", "Microsoft.EntityFrameworkCore*=Entity_Framework Dapper=Dapper"],
  ["dotnet", "mobile", "Microsoft.Maui*=MAUI"],
  ["dotnet", "test", "xunit*=xUnit NUnit*=NUnit MSTest*=MSTest Microsoft.NET.Test.Sdk=.NET_test_SDK"],
  ["elixir", "backend", "phoenix=Phoenix phoenix_live_view=LiveView"],
  ["elixir", "data", "ecto=Ecto ecto_sql=Ecto"],
  ["elixir", "lint", "credo=Credo"],
  ["dart", "mobile", "flutter=Flutter"],
  ["dart", "test", "flutter_test=Flutter_test test=package:test"],
  ["swift", "backend", "vapor=Vapor"],
];

const KIND_OF: Readonly<Record<string, string>> = { maven: "jvm", gradle: "jvm", sbt: "jvm", deno: "npm" };

/** The longest pattern that fits wins, because it says the most. */
const ENTRIES = KNOWN.flatMap(([kind, area, entries]) =>
  entries.split(" ").map((entry) => {
    const [pattern = "", label = ""] = entry.split("=");
    const [start = "", end] = pattern.toLowerCase().split("*");
    return { kind, area, pattern, start, end, label: label.replaceAll("_", " ") };
  }),
).sort((a, b) => b.pattern.length - a.pattern.length);

const fits = (name: string, start: string, end: string) => name.startsWith(start) && name.endsWith(end);

/** Areas of tools, which are never shipped. */
const TOOLS: ReadonlySet<Area> = new Set(["test", "lint", "build"]);
/** Areas that bundled applications list among their development dependencies. */
const BUNDLED: ReadonlySet<Area> = new Set(["frontend", "mobile", "desktop"]);

/**
 * The known frameworks and tools that a package names, each once. A development dependency does not make it a user of a
 * framework, except in an application that ships its bundle.
 */
export function frameworksOf({ kind, dependencies, development, isPrivate }: PackageManifest): Framework[] {
  const known = ENTRIES.filter((entry) => entry.kind === (KIND_OF[kind] ?? kind));
  const find = (name: string) => known.find(({ start, end }) => (end === undefined ? name === start : fits(name, start, end)));
  const found = new Map<string, Framework>();
  const add = (name: string, counts: (area: Area) => boolean) => {
    const entry = find(name.toLowerCase().replace(/\/v\d+$/, ""));
    if (entry && counts(entry.area)) found.set(entry.label, { label: entry.label, area: entry.area });
  };
  for (const name of dependencies) add(name, () => true);
  for (const name of development) add(name, (area) => TOOLS.has(area) || (isPrivate && BUNDLED.has(area)));
  return [...found.values()];
}
