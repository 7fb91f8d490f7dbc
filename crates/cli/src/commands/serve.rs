//! `serve`: from arguments to a running server, until Ctrl-C or SIGTERM.

use std::fs;
use std::io::{IsTerminal, stderr};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use tracing::level_filters::LevelFilter;
use turbospark_engine::EngineOptions;
use turbospark_engine::scheduler::SchedulerOptions;
use turbospark_server::{ModelSource, Server, ServerError, ServerOptions};

use crate::args_serve::ServeArgs;
use crate::failure::Usage;
use crate::{models, output};

pub(crate) fn serve(args: &ServeArgs) -> Result<()> {
    let options = options(args)?;
    let level = if args.quiet { LevelFilter::WARN } else { LevelFilter::INFO };
    let logs = tracing_subscriber::fmt().with_writer(stderr).with_max_level(level);
    logs.with_ansi(stderr().is_terminal()).with_target(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // Requests do little here: the models' threads do the work.
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let server = Server::bind(options).await.map_err(|error| match error {
            ServerError::NoKey(_) | ServerError::BadKey | ServerError::BadOrigin(_) => {
                Usage(error.to_string()).into()
            }
            error => anyhow::Error::new(error),
        })?;
        output::note(&format!("listening on http://{}", server.local_addr().context("no address")?));
        let stop = stop_signal()?;
        server.run(stop).await;
        Ok(())
    })
}

fn options(args: &ServeArgs) -> Result<ServerOptions> {
    let mut keys = args.api_key.clone();
    if let Some(path) = &args.api_key_file {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let before = keys.len();
        keys.extend(text.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned));
        if keys.len() == before {
            return Err(Usage(format!("{} has no key", path.display())).into());
        }
    }
    Ok(ServerOptions {
        models: sources(&args.models)?,
        engine: EngineOptions {
            threads: args.threads,
            kv: args.kv.into(),
            context: args.context,
            memory: args.memory,
            io: args.io.into(),
            look_ahead: Some(!args.no_look_ahead),
            ..EngineOptions::default()
        },
        scheduling: SchedulerOptions {
            max_running: args.max_running,
            max_queued: args.max_queued,
            ..SchedulerOptions::default()
        },
        kv_memory: args.kv_memory,
        address: SocketAddr::new(args.host, args.port),
        keys,
        no_key: args.no_key,
        cors: args.cors.clone(),
        max_body: usize::try_from(args.max_body).unwrap_or(usize::MAX),
        max_connections: args.max_connections,
        idle_timeout: Duration::from_secs(args.idle_timeout),
        idle_unload: args.idle_unload.map(Duration::from_secs),
        grace: Duration::from_secs(args.grace),
        preload: !args.lazy,
    })
}

/// The models to serve, each with its file.
fn sources(named: &[String]) -> Result<Vec<ModelSource>> {
    let mut sources: Vec<ModelSource> = named.iter().map(|m| ModelSource::parse(m)).collect();
    if sources.is_empty() {
        sources.push(ModelSource::parse(models::unnamed()?));
    }
    for source in &mut sources {
        source.path = models::find(&source.path)?;
    }
    Ok(sources)
}

/// Ends at the first Ctrl-C or SIGTERM; a second one ends the program.
fn stop_signal() -> Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    let mut terminate = {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?
    };
    Ok(async move {
        #[cfg(unix)]
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
        tokio::spawn(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(130);
            }
        });
    })
}
